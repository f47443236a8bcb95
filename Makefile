# The short way to everything; CMake and Ninja do the work.
#   make            build/slope and build/libslope
#   make demo       the examples, run                      make check      format, layering, sizes
#   make test       all tests, three builds                make format     lays out the source as clang-format has it
#   make bless      rewrite goldens; read the diff         make bench      speed against C
#   make fuzz       random derivatives, until stopped      make install    to PREFIX, under DESTDIR; uninstall
#   make fuzz-front broken programs (both: or SECONDS=n)   make accuracy   docs/accuracy.md
#   make through-c  all test programs through C            make test-gpu   and through CUDA, on a GPU
#   make through-slang  the derivatives of all tests as Slang, compiled again
#   make bench-gpu  a gradient that a million threads share, on a GPU
#   make deb        a Debian package, in the build folder  make pictures   those of README.md
BUILD   ?= build
PREFIX  ?= /usr/local
SECONDS ?=

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
	@$(BUILD)/slope build bench/gpu/splat.slang -target cuda -o $(BUILD)/splat.cu
	@cat bench/gpu/splat.cu >> $(BUILD)/splat.cu
	@nvcc -O3 -arch=native -o $(BUILD)/splat $(BUILD)/splat.cu && $(BUILD)/splat

accuracy: all
	@python3 scripts/accuracy.py --build $(BUILD)

through-c: all
	@tests/through_c.py --build $(BUILD)

through-slang: all
	@tests/through_slang.py --build $(BUILD) -v

test-gpu: all
	@tests/through_cuda.py --build $(BUILD)

fuzz: all
	@tests/fuzz/fuzz.py --build $(BUILD) $(if $(SECONDS),--seconds $(SECONDS))

fuzz-front:
	@cmake -S . -B build-sanitize -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSLOPE_SANITIZE=ON > /dev/null
	@cmake --build build-sanitize --target slope
	@tests/fuzz/front.py --build build-sanitize --seconds $(or $(SECONDS),60)

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
	rm -rf $(BUILD) build-gcc build-clang build-sanitize

.PHONY: all setup demo test bless format check bench bench-gpu accuracy through-c through-slang test-gpu fuzz fuzz-front install uninstall deb pictures clean
