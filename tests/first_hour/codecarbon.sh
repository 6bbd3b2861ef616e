# Somebody from CodeCarbon: the script with the import changed, and the files of last year.
cat >mnist.py <<'END'
from jouleprof.codecarbon import track_emissions

@track_emissions(project_name="mnist", force_carbon_intensity_g_co2e_kwh=56)
def train():
    return sum(i * i for i in range(3_000_000))

train()
END
python mnist.py
head -1 emissions.csv | grep -q '^timestamp,project_name,run_id,.*,energy_consumed,'
jouleprof import emissions.csv -o old.jprof
jouleprof report old.jprof | tee old.txt
grep -qE '[0-9] m?J' old.txt
