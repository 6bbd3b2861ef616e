"""Wrong and short usages: what the tool understands without "--", and what it says about words that it does not
know."""

import json
import os
import pty
import shutil
import subprocess
import sys

import pytest
from conftest import SOURCE

RUN = ["run", "--no-record", "--idle", "0s"]


@pytest.mark.parametrize("options", [[], ["-q"], ["--shortest=5s"], ["--devices", "package-0"]])
def test_a_command_begins_at_the_first_word_that_is_no_option(tool, options):
    done = tool(*RUN, *options, "sh", "-c", "echo $0 $@", "--json", "--", "x")
    assert done.out == "--json -- x\n"


def test_options_of_a_command_are_its_own(tool):
    done = tool(*RUN, "-q", "sh", "-c", "echo ran $0", "--help")
    assert done.out == "ran --help\n"


def test_dashes_still_separate(tool):
    assert tool(*RUN, "-q", "--", "echo", "a").out == "a\n"


@pytest.mark.parametrize("words, hint", [
    (["rnu"], "there is no verb 'rnu'; did you mean 'run'?"),
    (["help", "reprot"], "did you mean 'report'?"),
    (["report", "x", "--to", "1s", "--jsno"], "there is no option --jsno; did you mean --json?"),
    (["report", "x", "--top", "abc"], "--top: 'abc' is not a whole number"),
    (["fly"], "there is no verb 'fly'\n"),
    (["--versoin"], "there is no option '--versoin'; did you mean '--version'?"),
    (["-v"], "there is no option '-v'; did you mean '-V'?"),
    (["report", "x", "--pric=0.3"], "there is no option --pric; did you mean --price?"),
    (["export", "x", "--format", "cvs"], "; did you mean csv?"),
    (["monitor", "--format=jsonn"], "did you mean jsonl?"),
    (["report", "x", "--price"], "--price needs a value: --price PRICE"),
    (["report", "x", "--top", "1", "--top", "2"], "--top is given more than once"),
    (["merge", "-o", "x"], "is required: jouleprof merge FILE... -o OUTPUT [options]"),
    (["report", "x", "--json=out"], "--json takes no value; leave out '=out'"),
    (["replay", "--pid", "x"], "--pid: 'x' is not a number above 0"),
    (["import", "x", "-o", "y", "--block", "x"], "--block: 'x' is not a number above 0"),
    (["report", "x", "--rest-share", "2"], "--rest-share: '2' is not a number from 0 to 1\n"),
    (["compare", "--pairs", "1", "a", "b"], "--pairs: '1' is not a number from 2 to 1000\n"),
    (["report", "x", "--from", "2"], "--from: '2' is not a duration"),
    (["export", "x", "--to", "y"], "--to: 'y' is not a duration"),
    (["import", "x", "-o", "y", "--interval", "2"], "--interval: '2' is not a duration"),
    (["import", "x", "-o", "y", "--latency", "2"], "--latency: '2' is not a duration"),
    (["bench", "x", "--max-time", "2"], "--max-time: '2' is not a duration"),
    (["bench", "x", "--min-time", "2"], "--min-time: '2' is not a duration"),
    (["monitor", "--delay", "x"], "--delay: 'x' is not a duration"),
    (["serve", "--tick", "2"], "--tick: '2' is not a duration"),
    (["serve", "--keep-ended", "2"], "--keep-ended: '2' is not a duration"),
    (["serve", "--share-fastest", "2"], "--share-fastest: '2' is not a duration"),
    (["serve", "--otlp", "http://x", "--otlp-interval", "2"], "--otlp-interval: '2' is not a duration"),
    (["serve", "--record", "x", "--record-max-age", "x"], "--record-max-age: 'x' is not a duration"),
    (["serve", "--record", "x", "--record-max-size", "x"], "--record-max-size: 'x' is no size"),
    (["sweep", "--max-time", "2", "true"], "--max-time: '2' is not a duration"),
    (["doctor", "--capture", "x", "--capture-time", "2"], "--capture-time: '2' is not a duration"),
])
def test_a_word_that_is_not_known(tool, words, hint):
    assert hint in tool(*words, status=2).err


@pytest.mark.parametrize("words, wanted", [
    (["doctor", "--wall-error", "x"], "--wall-error requires --wall"),
    (["doctor", "--load", "x"], "--load requires --wall"),
    (["doctor", "--supply-efficiency", "x"], "--supply-efficiency requires --wall"),
    (["doctor", "--capture-time", "1s"], "--capture-time requires --capture"),
    (["doctor", "--forget", "--wall", "x"], "--wall requires --calibrate"),
    (["monitor", "-c", "1", "-s", "p"], "--select is of --format dmon"),
    (["monitor", "-c", "1", "-o", "T"], "--options is of --format dmon"),
    (["export", SOURCE / "examples" / "h200-layers.jprof", "--python", "x"], "--python is of --format parquet"),
])
def test_an_option_without_effect_is_refused(tool, words, wanted):
    refused = tool(*words, status=2)
    assert wanted in refused.err and refused.out == ""


@pytest.mark.parametrize("name", ["power.parquet", "power.parquet.gz"])
def test_a_parquet_file_is_not_written_as_csv(tool, name):
    refused = tool("export", SOURCE / "examples" / "h200-layers.jprof", "-o", name, status=2)
    assert "--format parquet -o FOLDER" in refused.err
    assert not (tool.folder / name).exists()


def test_a_name_of_another_kind_is_not_written_as_csv(tool):
    other = tool("export", SOURCE / "examples" / "h200-layers.jprof", "-o", "power.xlsx", status=2)
    assert "no format has the ending .xlsx" in other.err and not (tool.folder / "power.xlsx").exists()


def test_a_python_that_cannot_be_started_is_invalid_usage(tool):
    recording = SOURCE / "examples" / "h200-layers.jprof"
    assert "cannot run 'x'" in tool("ledger", recording, "-o", "table", "--python", "x", status=2).err


@pytest.mark.parametrize("words, instead", [
    (["restore"], "jouleprof apply --restore"),
    (["apply", "--until-exit", "x"], "leave it out"),
    (["compare", "a", "b", "--junit", "x"], "--format junit=FILE"),
    (["export", "x", "--format", "html"], "jouleprof report FILE --html OUT"),
    (["export", "x", "-o", "x.svg"], "jouleprof report FILE --svg OUT"),
    (["export", "x", "--by", "layer"], "jouleprof report FILE --by WHAT --csv"),
])
def test_what_is_gone_names_what_takes_its_place(tool, words, instead):
    assert instead in tool(*words, status=None).err


def test_the_help_obeys_columns_and_has_all_options(tool):
    tool.environment["COLUMNS"] = "60"
    short, long = tool("run", "--help").out, tool("run", "--help-all").out
    assert "--kernels" in short and "--counter-interval" not in short and "--counter-interval" in long
    options = long[long.index("Common options:"):long.index("Examples:")]
    assert max(map(len, options.splitlines())) <= 60


def test_completions_and_the_manual_page(tool):
    script = tool("completion", "bash").out
    wanted = 'COMP_WORDS=(jouleprof run --counter-i); COMP_CWORD=2; _jouleprof; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script + wanted], capture_output=True, text=True, check=True)
    assert done.stdout == "--counter-interval\n"
    assert "#compdef jouleprof" in tool("completion", "zsh").out
    assert "-l counter-interval" in tool("completion", "fish").out
    assert ".B \\-\\-counter\\-interval TIME" in tool("man").out


def typed(folder, script, keys):
    """The words of a line of an interactive bash, after these keys."""
    (folder / "completion").write_text(script)
    terminal, end = pty.openpty()
    shell = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], stdin=end, stdout=end, stderr=end, cwd=folder,
                             env={"PATH": os.environ["PATH"], "TERM": "dumb", "INPUTRC": "/dev/null"},
                             start_new_session=True)
    os.close(end)
    # Ctrl-A goes to the begin of the line.
    os.write(terminal, f"PS1= ; . ./completion\n{keys}\x01printf '<%s>\\n' >typed \nexit\n".encode())
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # the shell is gone
        pass
    shell.wait(timeout=20)
    os.close(terminal)
    return (folder / "typed").read_text()


def test_bash_completes_names_of_files_and_commands(tool):
    script = tool("completion", "bash").out
    (tool.folder / "two words.jprof").touch()
    # A name with a space is one word, and a folder that is named as a verb does not change it.
    assert typed(tool.folder, script, "jouleprof report two\t") == "<jouleprof>\n<report>\n<two words.jprof>\n"
    (tool.folder / "merge").mkdir()
    assert typed(tool.folder, script, "jouleprof mer\tx") == "<jouleprof>\n<merge>\n<x>\n"
    # What follows "--" is a command with options of its own.
    assert typed(tool.folder, script, "jouleprof run -- mkfif\tx") == "<jouleprof>\n<run>\n<-->\n<mkfifo>\n<x>\n"
    assert typed(tool.folder, script, "jouleprof run -- ls --counter-i\t").endswith("<--counter-i>\n")
    assert typed(tool.folder, script, "jouleprof run --counter-i\t").endswith("<--counter-interval>\n")


# Types a line and a tab in a shell of its own, and prints what appears.
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
line() { zpty -w shell "$1"; }
line 'fpath=($PWD $fpath); autoload -U compinit; compinit -u -d ./dump; LISTMAX=1000; stty columns 120 rows 300'
line 'unsetopt auto_menu; PS1="<re""ady>"'
zpty -r shell out '*<ready>*'  # the line editor's prompt: a tab before it is no request
zpty -w shell "$1"$'\t\025print DONE'  # Ctrl-U empties the line
while zpty -r shell out; do [[ $out == *DONE* && $out != *print* ]] && break; print -r -- "$out"; done
zpty -d shell
"""


def completed(tool, shell, line):
    """What `shell` offers after `line`."""
    name, words = {"zsh": ("_jouleprof", ["zsh", "-f", "-c", ZSH, "zsh", line]),
                   "fish": ("jouleprof.fish", ["fish", "-N", "-c", f"source jouleprof.fish; complete -C '{line}'"])}[shell]
    (tool.folder / name).write_text(tool("completion", shell).out)
    environment = {**os.environ, "PATH": f"{tool.folder}:{os.environ['PATH']}", "HOME": str(tool.folder)}
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=tool.folder, env=environment,
                          timeout=60).stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completions_in_their_shell(tool, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is missing")
    verbs = completed(tool, shell, "jouleprof ")
    assert all(verb in verbs for verb in ("sweep", "ledger", "completion")) and "model's inference" in verbs
    assert "--counter-interval" in completed(tool, shell, "jouleprof run --counter-i")
    assert "--max-slowdown" in completed(tool, shell, "jouleprof sweep --max-sl")
    assert "fish" in completed(tool, shell, "jouleprof completion f")
    assert "annotate" in completed(tool, shell, "jouleprof help ann")


def test_a_run_with_all_that_costs_ask_for(tool):
    options = ["--per", "4:step", "--price", "0.30 EUR/kWh", "--carbon", "363", "--pue", "1.5"]
    command = [sys.executable, "-c", "sum(i * i for i in range(3_000_000))"]
    done = tool("run", "-o", "x.jprof", "--idle", "0s", *options, "--json", "x.json", "--", *command)
    assert all(word in done.err for word in ("per step", " EUR", "g CO2e", "x PUE 1.5"))
    report = json.loads((tool.folder / "x.json").read_text())
    for unit, all_of_it in (("money", "money"), ("carbon_grams", "carbon_grams")):
        assert report["per_unit"][unit] == pytest.approx(report["costs"][all_of_it] / 4, rel=0.05, abs=1e-11)
    repeated = tool("run", "-o", "y.jprof", "--idle", "0s", "--repeat", "3", *options, "--", *command).err
    assert "3 runs" in repeated and "standard deviation" in repeated and "per step" in repeated
    tool("report", "y.jprof", "--run", "3")
    assert "y.jprof exists" in tool("run", "-o", "y.jprof", "--repeat", "2", "true", status=125).err
    failed = tool("run", "--no-record", "--idle", "0s", "--repeat", "3", "sh", "-c", "exit 3", status=3)
    assert failed.err.count("run 1 of 3") == 1 and "run 2" not in failed.err


def test_a_duration_ends_the_command_and_not_a_process(tool):
    assert tool("run", "--no-record", "--idle", "0s", "--duration", "300ms", "sleep", "60", status=143).err
    tool("run", "--no-record", "--idle", "0s", "--duration", "60s", "true")
    process = subprocess.Popen(["sleep", "60"])
    try:
        tool("run", "--no-record", "--pid", str(process.pid), "--duration", "300ms")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_two_commands_are_compared(tool):
    done = tool("compare", "sleep 0.1", "sleep 0.2", "--pairs", "2", "--warmup", "0", "-q")
    assert "before     sleep 0.1, 2 runs" in done.out and "time" in done.out


def test_help_of_a_verb_and_the_version(tool):
    assert tool("help", "run").out == tool("run", "--help").out
    assert "jouleprof completion bash|zsh|fish" in tool("help", "completion").out
    assert tool("completion", "--help").out == tool("help", "completion").out
    assert tool("man", "--help").out == tool("--help").out
    for words in (["help"], ["help", "help"], ["--help-all"]):
        assert tool(*words).out == tool("--help").out
    assert tool("-V").out == tool("--version").out


def test_a_bad_value_names_its_source(tool):
    assert "jouleprof: --idle: '2' is not a duration" in tool("run", "--idle", "2", "true", status=125).err
    tool.environment["JOULEPROF_IDLE"] = "soon"
    assert "the environment variable JOULEPROF_IDLE: --idle: 'soon'" in tool("run", "true", status=125).err
    tool.environment["JOULEPROF_IDLE"] = ""
    config = tool.folder / "config"
    config.write_text("# two lines\nidle = soon\n")
    tool.environment["JOULEPROF_CONFIG"] = str(config)
    assert f"line 2 of {config}: --idle: 'soon'" in tool("run", "true", status=125).err


def test_words_that_are_no_carbon_intensity_name_the_option(tool):
    assert "--carbon FR: neither a number" in tool(*RUN, "--carbon", "FR", "true", status=None).err


def test_a_command_that_sleeps_has_at_most_so_much_and_never_zero(tool):
    """The processes of `sleep` take no CPU time that the kernel counts, and idle power is unknown."""
    tool.environment["JOULEPROF_NVML_SCENARIO"] = ""
    said = tool("run", "--no-record", "--idle", "0s", "--repeat", "2", "--per", "4:x", "sleep", "0.1").err
    # A busy machine may give it a tick.
    assert " 0 J" not in said and "±0 %" not in said
    if "mean" not in said.splitlines()[2]:
        assert "run 1 of 2: at most" in said and "2 runs     at most" in said and "per x      at most" in said
    said = tool("run", "-o", "s.jprof", "--idle", "0s", "sleep", "0.3").err
    assert " 0 J" not in said and "0 Wh" not in said and ("at most" in said or "Wh (" in said)
    assert " 0 J" not in tool("report", "s.jprof", "--by", "job").out


def test_a_device_that_a_variable_names(tool):
    tool.environment["JOULEPROF_DEVICES"] = "gpu7"
    assert "(--devices is from the environment variable JOULEPROF_DEVICES)" in tool(*RUN, "true", status=125).err


def test_a_variable_is_not_taken_for_an_option(tool):
    """The Python package's entry point sets it for all verbs; the option needs another one."""
    tool.environment["JOULEPROF_PYTHON"] = sys.executable
    done = tool("sweep", "--dry-run", "--", "true", status=None)
    assert done.returncode == 6 and "--python" not in done.err


def test_each_verb_starts_through_the_entry_point_of_the_package(tool):
    """As `python -m jouleprof` starts it: by python/jouleprof/__main__.py."""
    package = tool.folder / "package"
    (package / "bin").mkdir(parents=True)
    (package / "bin" / "jouleprof").symlink_to(os.environ["JOULEPROF_TOOL"])
    (package / "__main__.py").write_text((SOURCE / "python" / "jouleprof" / "__main__.py").read_text())

    def through(*words):
        return subprocess.run([sys.executable, package / "__main__.py", *words], cwd=tool.folder,
                              env=tool.environment, text=True, capture_output=True, timeout=60)

    help_text = tool("--help").out
    verbs = [line.split()[0] for line in help_text.split("  -h, --help")[0].splitlines()
             if line.startswith("  ") and line[2].isalpha()]
    assert len(verbs) > 10
    for verb in verbs:
        assert through(verb, "--help").returncode == 0, verb
        done = through(verb, "--no-such-option")
        assert "there is no option --no-such-option" in done.stderr, (verb, done.stderr)
    assert "--python" not in through("sweep", "--dry-run", "--", "true").stderr


@pytest.mark.parametrize("by, option", [("layer", "--layers"), ("phase", "--layers"), ("kernel", "--kernels"),
                                        ("range", "--kernels")])
def test_a_hint_names_the_option_that_records_what_is_missing(tool, by, option):
    tool("run", "-o", "x.jprof", "--idle", "0s", "true")
    said = tool("report", "x.jprof", "--by", by, status=4).err.splitlines()
    assert f"trace of {by if by == 'range' else option[2:-1]}s" in said[0] and f"run {option} --" in " ".join(said)
    # It may have been recorded with --layers: then there was nothing to trace.
    assert (option == "--layers") == ("no traced process called a module of PyTorch" in said[0])
    assert any("GPU" in line for line in said[1:])


@pytest.mark.parametrize("options, of", [
    (["--svg", "x.svg", "--wall", "w.csv"], "--wall is of the summary as text and JSON, and of a job"),
    (["--by", "kernel", "--price", "0.3"], "--price is of the summary, but of no CSV, and of a job"),
    (["--csv", "--whole-machine"], "--whole-machine is of the summary, but of no CSV, and of a job"),
    (["--by", "host", "--csv"], "--csv is of one recording"),
    (["--by", "host", "--force"], "--force is of --html, --svg and --png"),
    (["--by", "window", "--sort", "time"], "--sort is of --by kernel, layer, range and phase"),
])
def test_an_option_of_another_view_is_refused(tool, options, of):
    refused = tool("report", SOURCE / "examples" / "h200-layers.jprof", *options, status=2)
    assert of in refused.err and not (tool.folder / "x.svg").exists()


def test_a_setting_is_no_request(tool):
    """What the configuration file sets is of the views that have it, and refuses no other."""
    (tool.folder / "settings").write_text("price = 0.3\n")
    tool.environment["JOULEPROF_CONFIG"] = str(tool.folder / "settings")
    tool("report", SOURCE / "examples" / "h200-layers.jprof", "--by", "kernel")


def test_a_mistyped_setting_names_its_line_and_what_is_near(tool):
    (tool.folder / "settings").write_text("# mine\nidel = 2s\n")
    tool.environment["JOULEPROF_CONFIG"] = str(tool.folder / "settings")
    said = tool("report", SOURCE / "examples" / "h200-layers.jprof").err
    assert "line 2 of" in said and "sets 'idel', which no verb has as an option; did you mean 'idle'?" in said


def test_wide_tables_cut_no_name(tool):
    for by, name in (("layer", "LlamaDecoderLayer [32, 128, 1024] bfloat16, [1, 128, 64] bfloat16"),
                     ("kernel", "at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl")):
        file = SOURCE / "examples" / ("h200-layers.jprof" if by == "layer" else "h200-kernels.jprof")
        assert "..." in tool("report", file, "--by", by).out
        text = tool("report", file, "--by", by, "--wide").out
        assert "..." not in text and name in text


def test_twelve_alike_layers_are_one_row(tool):
    file = SOURCE / "examples" / "h200-layers.jprof"
    text = tool("report", file, "--by", "layer", "--depth", "9").out
    assert "12 layers" in text and "11  " not in text
    text = tool("report", file, "--by", "layer", "--depth", "9", "--top", "400", "--no-fold").out
    assert "12 layers" not in text and "      11  " in text


def test_a_temporary_folder_that_is_not_there_is_no_internal_error(tool):
    tool.environment["TMPDIR"] = "/nonexistent"
    two = [str(SOURCE / "examples" / name) for name in ("h200-deit.jprof", "h200-kernels.jprof")]
    pairs = ["compare", "--pairs", "2", "--", "true", "---", "true"]
    for words, status in ((["report", *two, "--by", "host"], 3), (pairs, 6)):
        said = tool(*words, status=status).err
        assert "cannot make a temporary folder: " in said and "set TMPDIR to a folder that can be written" in said
