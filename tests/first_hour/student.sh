# A PhD student: where in my training does the energy go? One command, then two lines in the script.
cat >train.py <<'END'
import jouleprof

def train(batch):
    return sum(i * i for i in range(300_000))

for _ in range(2):
    for batch in jouleprof.steps(range(10), name="step", epoch="epoch"):
        train(batch)
print(jouleprof.total("epoch"))
END
jouleprof run -o first.jprof -- python -c 'sum(i * i for i in range(5_000_000))'
jouleprof run -q -o train.jprof -- python train.py | tee steps.txt
grep -q '^total .* J' steps.txt
jouleprof report train.jprof --by window >windows.txt
grep -q step windows.txt && grep -q epoch windows.txt
