# An engineer: what does this job cost, in money and CO2, of the whole and of one sample?
jouleprof run -o job.jprof --per 40:sample -- python -c 'sum(i * i for i in range(5_000_000))'
jouleprof report job.jprof --price 0.30/kWh --carbon 363 | tee cost.txt
grep -q 'CO2' cost.txt
python - <<'END'
import jouleprof

factors = jouleprof.Factors(price_per_kwh=0.30, currency="EUR", grams_co2e_per_kwh=363, source="a bill")
with jouleprof.window("serving") as window:
    sum(i * i for i in range(3_000_000))
print(window.cost(factors), float(window) / 40, "J per sample")
END
