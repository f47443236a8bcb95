/* Names that C can say.
 *
 *   bwd_diff(f), fwd_diff(f)     bwd_f, fwd_f, also nested: fwd_bwd_f
 *   f<float,3>, Camera.project   f_float_3, Camera_project: what is not a letter, digit or _ becomes one _
 *   pow, int, make_float3        slope_pow, ...: what C, its library, C++ or a printer claims gets a prefix
 *   __Image                      slope_Image: a type of the library's own */
#include "emit/emit.h"
#include "emit/names.h"

static const char claimed_names[] =
    " abort abs access acos acosf acosh acoshf alignas alignof alloca and and_eq asin asinf asinh "
    "asinhf asm assert atan atan2 atan2f atanf atanh atanhf atexit atof atoi atol auto bcmp bcopy "
    "bitand bitor bool break bsearch BUFSIZ bzero calloc case catch cbrt cbrtf ceil ceilf char class "
    "close compl const const_cast constexpr continue copysign copysignf cos cosf cosh coshf decltype "
    "default delete div do double drem dynamic_cast else enum EOF erf erfc erfcf erff errno exit "
    "EXIT_FAILURE EXIT_SUCCESS exp exp10 exp10f exp2 exp2f expf explicit expm1 expm1f export extern "
    "fabs fabsf false fclose fdim fdimf ffs FILENAME_MAX finite float floor floorf fma fmaf fmax "
    "fmaxf fmin fminf fmod fmodf fopen FOPEN_MAX for fork FP_FAST_FMA FP_FAST_FMAF FP_ILOGB0 "
    "FP_ILOGBNAN FP_INFINITE FP_INT_DOWNWARD FP_INT_TONEAREST FP_INT_TONEARESTFROMZERO "
    "FP_INT_TOWARDZERO FP_INT_UPWARD FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO fpclassify fprintf fputs "
    "fread free frexp frexpf friend fscanf fwrite gamma getenv gets goto HUGE_VAL HUGE_VALF "
    "HUGE_VALL hypot hypotf i386 if index INFINITY inline int INT16_C INT16_MAX INT16_MIN INT32_C "
    "INT32_MAX INT32_MIN INT64_C INT64_MAX INT64_MIN INT8_C INT8_MAX INT8_MIN INT_FAST16_MAX "
    "INT_FAST16_MIN INT_FAST32_MAX INT_FAST32_MIN INT_FAST64_MAX INT_FAST64_MIN INT_FAST8_MAX "
    "INT_FAST8_MIN INT_LEAST16_MAX INT_LEAST16_MIN INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST64_MAX "
    "INT_LEAST64_MIN INT_LEAST8_MAX INT_LEAST8_MIN INTMAX_C INTMAX_MAX INTMAX_MIN INTPTR_MAX "
    "INTPTR_MIN isatty isfinite isgreater isinf isless isnan isnormal isunordered j0 j1 jn L_ctermid "
    "L_tmpnam labs ldexp ldexpf ldiv lgamma link linux llabs llround log log10 log10f log1p log1pf "
    "log2 log2f logb logbf logf long lrand48 lrint lround M_1_PI M_2_PI M_2_SQRTPI M_E M_LN10 M_LN2 "
    "M_LOG10E M_LOG2E M_PI M_PI_2 M_PI_4 M_SQRT1_2 M_SQRT2 main malloc MATH_ERREXCEPT "
    "math_errhandling MATH_ERRNO MAXFLOAT MB_CUR_MAX memchr memcmp memcpy memmove memset modf modff "
    "mutable namespace NAN nan NDEBUG nearbyint nearbyintf new nextafter noexcept not not_eq NULL "
    "nullptr offsetof open operator or or_eq P_tmpdir pipe pow powf printf private protected "
    "PTRDIFF_MAX PTRDIFF_MIN public putchar puts qsort raise rand RAND_MAX random read realloc "
    "register reinterpret_cast remainder remainderf remove remquo rename restrict return rewind "
    "rindex rint rintf round roundeven roundevenf roundf scalb scalbln scalbn SEEK_CUR SEEK_END "
    "SEEK_SET select short SIG_ATOMIC_MAX SIG_ATOMIC_MIN signal signbit signed signgam significand "
    "sin sincos sincosf sinf sinh sinhf SIZE_MAX sizeof sleep SNAN SNANF SNANL sprintf sqrt sqrtf "
    "srand sscanf static static_assert static_cast stderr stdin stdout strcat strchr strcmp strcpy "
    "strlen strncmp struct switch system tan tanf tanh tanhf template tgamma this thread_local throw "
    "time TMP_MAX tmpfile true trunc truncf try typedef typeid typename typeof UINT16_C UINT16_MAX "
    "UINT32_C UINT32_MAX UINT64_C UINT64_MAX UINT8_C UINT8_MAX UINT_FAST16_MAX UINT_FAST32_MAX "
    "UINT_FAST64_MAX UINT_FAST8_MAX UINT_LEAST16_MAX UINT_LEAST32_MAX UINT_LEAST64_MAX "
    "UINT_LEAST8_MAX UINTMAX_C UINTMAX_MAX UINTPTR_MAX ungetc union unix unlink unsigned using "
    "virtual void volatile wait WCHAR_MAX WCHAR_MIN wchar_t while WINT_MAX WINT_MIN write xor xor_eq "
    "y0 y1 yn ";

static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool starts(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

const char *emit_c_name(Arena *arena, const char *name) {
    Text text = {.arena = arena};
    if (*name >= '0' && *name <= '9') text_char(&text, '_');
    for (const char *at = name; *at; at++) {
        if (starts(at, "bwd_diff(") || starts(at, "fwd_diff(")) {
            text_add(&text, (Str){at, 4});
            at += 8;
        } else if (is_word_char(*at)) {
            text_char(&text, *at);
        } else if (text.len && text.at[text.len - 1] != '_' && at[1] && strspn(at, ")>]}. ") < strlen(at)) {
            text_char(&text, '_');
        }
    }
    return text.len ? text.at : "_";
}

/* float3 of float3_add: how long? 0: it is no such type. */
static size_t scalar_length(const char *name) {
    static const char *const words[] = {"bool",   "int8", "uint8", "int16", "uint16", "int64",
                                        "uint64", "int",  "uint",  "half",  "float",  "double"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (!starts(name, words[i])) continue;
        return length + (name[length] >= '1' && name[length] <= '4');
    }
    return 0;
}

bool emit_is_vector(const char *name) {
    size_t length = scalar_length(name);
    return length && !name[length];
}

/* Functions that printers make for vectors and buffers. */
static bool is_helper(const char *name) {
    static const char *const prefixes[] = {"make_", "splat_", "zero_"};
    size_t length = scalar_length(name);
    if (length && name[length] == '_') return true;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *rest = name + strlen(prefixes[i]);
        if (starts(name, prefixes[i]) && scalar_length(rest) && !rest[scalar_length(rest)]) return true;
    }
    return starts(name, "Buffer_") || starts(name, "Slope") || starts(name, "slope_") ||
           starts(name, "SLOPE_") || starts(name, "zero_Buffer_");
}

bool emit_is_claimed(Arena *arena, const char *name) {
    if (strchr(name, ' ')) return false;
    if (starts(name, "rt_") || starts(name, "runtime_") || is_helper(name)) return true;
    if (name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'))) return true;
    return strstr(claimed_names, format_text(arena, " %s ", name)) != NULL;
}

const char *emit_outer_name(Arena *arena, const char *name) {
    const char *plain = emit_c_name(arena, name);
    if (!emit_is_claimed(arena, plain)) return plain;
    bool is_type_of_library = starts(plain, "__") && plain[2] >= 'A' && plain[2] <= 'Z';
    return format_text(arena, "slope_%s", is_type_of_library ? plain + 2 : plain);
}
