# The short way to everything; CMake and Ninja do the work.
#   make            build/slope and build/libslope
#   make demo       the examples, run                      make check      format, layering, sizes
#   make test       all tests, two builds                  make format     lays out the source as clang-format has it
#   make bless      rewrite goldens; read the diff         make bench      speed against C
#   make fuzz       random derivatives, until stopped      make install    to PREFIX, under DESTDIR; uninstall
#   make fuzz-front broken programs (both: or SECONDS=n)   make accuracy   docs/accuracy.md
#   make fuzz-all   libFuzzer on programs, IR, the API     make fuzz-api   every allocation fails once
#   make through-c  all test programs through C            make test-gpu   and through CUDA, on a GPU
#   make through-lanes  the functions of all tests as kernels, several items at once
#   make through-interp  all test programs by the interpreter
#   make through-ptx  all test programs to PTX, by LLVM
#   make through-slang  the derivatives of all tests as Slang, compiled again
#   make bench-gpu  gradients on a GPU, against CUDA by hand, PyTorch and JAX
#   make deb        a Debian package, in the build folder  make pictures   those of README.md
#   make bench-python  calls and rows from Python, against numpy and PyTorch; kernels over views of tensors
BUILD   ?= build
PREFIX  ?= /usr/local
SECONDS ?=
SANITIZER = compute-sanitizer --error-exitcode 9 --report-api-errors no --log-file /dev/null

export SLOPE_CACHE =    # what is tested and measured is compiled

all:
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) > /dev/null
	@cmake --build $(BUILD)

setup:
	@scripts/setup.sh

demo: setup all
	@scripts/demo.sh $(BUILD)

test: setup
	@python3 scripts/test.py

bless: all
	@tests/run.py --build $(BUILD) --bless

format:
	@find src include tests examples bench -name '*.[ch]' -exec clang-format -i {} +

check:
	@scripts/check.py

bench: all
	@python3 bench/run.py --build $(BUILD)

bench-gpu: all
	@python3 bench/gpu/run.py --build $(BUILD)

bench-python: all
	@SLOPE_LIBRARY=$(BUILD) PYTHONPATH=python /usr/bin/python3 bench/python.py
	@SLOPE_LIBRARY=$(BUILD) PYTHONPATH=python /usr/bin/python3 bench/views.py

accuracy: all
	@python3 scripts/accuracy.py --build $(BUILD)

through-c: all
	@tests/through_c.py --build $(BUILD)

through-lanes: all
	@tests/through_lanes.py --build $(BUILD) -v
	@tests/through_lanes.py --build $(BUILD) --rounds
	@for n in 4 16; do tests/run.py --build $(BUILD) --lanes $$n run/ diff/ library/ || exit 1; done

through-interp: all
	@tests/run.py --build $(BUILD) --interpret
	@tests/library/library.py --build $(BUILD) --interpret

through-ptx: all
	@tests/through_ptx.py --build $(BUILD) $(if $(shell command -v ptxas),--assemble)

through-slang: all
	@tests/through_slang.py --build $(BUILD) -v

test-gpu: all
	@tests/through_cuda.py --build $(BUILD)
	@tests/through_device.py --build $(BUILD)
	@tests/through_device.py --build $(BUILD) --device-code llvm
	@tests/through_device.py --build $(BUILD) --of 20 --command '$(SANITIZER) --tool memcheck'
	@tests/through_device.py --build $(BUILD) --command '$(SANITIZER) --tool racecheck' run/program run/global run/wave
	@if nvidia-smi -L > /dev/null 2>&1; then tests/fuzz/fuzz.py --build $(BUILD) --only GPU --seed 1 --count 2000; fi
	@$(MAKE) -s test-gpu-python

# The PyTorch and JAX of python3, tensors of a GPU among them. Only this needs no compiler, where SLOPE_LIBRARY names a library.
test-gpu-python:
	@SLOPE_LIBRARY=$${SLOPE_LIBRARY:-$(BUILD)} python3 -B -m pytest -q -rs -p no:cacheprovider \
		tests/python/test_torch.py tests/python/test_cuda.py tests/python/test_jax.py

fuzz: all
	@tests/fuzz/fuzz.py --build $(BUILD) $(if $(SECONDS),--seconds $(SECONDS))

fuzz-front:
	@cmake -S . -B build-sanitize -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSLOPE_SANITIZE=ON > /dev/null
	@cmake --build build-sanitize --target slope
	@tests/fuzz/front.py --build build-sanitize --seconds $(or $(SECONDS),60)

# Of clang, with its libFuzzer: Debian's libclang-rt-dev of the same version, which clang 14 has in libclang-common-14-dev.
fuzz-all:
	@cmake -S . -B build-fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O2 -DSLOPE_FUZZ=ON > /dev/null
	@cmake --build build-fuzz --target fuzz_front fuzz_ir fuzz_api
	@tests/fuzz/targets.py --build build-fuzz --seconds $(or $(SECONDS),60)

fuzz-api:
	@cmake -S . -B build-sanitize -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSLOPE_SANITIZE=ON > /dev/null
	@cmake --build build-sanitize --target test_memory orderfuzz
	@build-sanitize/tests/test_memory all
	@build-sanitize/tests/orderfuzz $(or $(SEED),1) $(or $(COUNT),100)

# Into the system itself, not a package: programs find the library at once.
install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig 2> /dev/null || true; fi

deb: all
	@scripts/deb.sh $(BUILD)

pictures: all
	@scripts/demo.sh $(BUILD) > /dev/null
	@cp $(BUILD)/pictures/scene.png $(BUILD)/pictures/loss.svg docs/pictures/
	@scripts/pictures.py --benchmarks docs/pictures

uninstall:
	@test -f $(BUILD)/install_manifest.txt || { echo "nothing was installed from $(BUILD)"; exit 1; }
	@sed 's#^#$(DESTDIR)#' $(BUILD)/install_manifest.txt | tr '\n' '\0' | xargs -0 rm -f
	@echo "removed what $(BUILD)/install_manifest.txt lists"

clean:
	rm -rf $(BUILD) build-gcc build-clang build-sanitize build-fuzz

.PHONY: all setup demo test bless format check bench bench-gpu accuracy through-c through-interp through-lanes through-ptx through-slang test-gpu test-gpu-python fuzz fuzz-front fuzz-all fuzz-api install uninstall deb pictures bench-python clean
