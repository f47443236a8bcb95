/* Names that C can say.
 *
 *   bwd_diff(f), fwd_diff(f)     bwd_f, fwd_f, also nested: fwd_bwd_f
 *   f<float,3>, Camera.project   f_float_3, Camera_project: what is not a letter, digit or _ becomes one _
 *   operator+                    operator_add
 *   pow, int, make_float3        slope_pow, ...: what C, its library, C++ or a printer claims gets a prefix
 *   __Image                      slope_Image: a type of the library's own */
#include "emit/emit.h"
#include "emit/names.h"

/* Words that nothing can be called by: keywords, macros, and the types that printed code uses. */
static const char claimed_everywhere[] =
    " alignas alignof alloca and and_eq asm assert auto BIG_ENDIAN bitand bitor bool break BUFSIZ "
    "BYTE_ORDER case catch char char16_t char32_t char8_t CHAR_BIT CHAR_MAX CHAR_MIN class CLOCKS_PER_SEC "
    "co_await co_return co_yield compl complex concept const const_cast consteval constexpr constinit "
    "continue "
    "DECIMAL_DIG decltype default delete do double dynamic_cast EAGAIN EDOM EEXIST EILSEQ EINTR EINVAL "
    "EIO else ENOENT ENOMEM enum EOF ERANGE errno EXIT_FAILURE EXIT_SUCCESS explicit export extern false "
    "FD_SETSIZE FILENAME_MAX float FOPEN_MAX for FP_FAST_FMA FP_FAST_FMAF FP_ILOGB0 FP_ILOGBNAN "
    "FP_INFINITE FP_INT_DOWNWARD FP_INT_TONEAREST FP_INT_TONEARESTFROMZERO FP_INT_TOWARDZERO "
    "FP_INT_UPWARD FP_LLOGB0 FP_LLOGBNAN FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO friend goto HUGE_VAL "
    "HUGE_VALF HUGE_VALL I i386 if imaginary INFINITY inline int INT16_C INT16_MAX INT16_MIN int16_t "
    "INT16_WIDTH INT32_C INT32_MAX INT32_MIN int32_t INT32_WIDTH INT64_C INT64_MAX INT64_MIN int64_t "
    "INT64_WIDTH INT8_C INT8_MAX INT8_MIN int8_t INT8_WIDTH INT_FAST16_MAX INT_FAST16_MIN "
    "INT_FAST16_WIDTH INT_FAST32_MAX INT_FAST32_MIN INT_FAST32_WIDTH INT_FAST64_MAX INT_FAST64_MIN "
    "INT_FAST64_WIDTH INT_FAST8_MAX INT_FAST8_MIN INT_FAST8_WIDTH INT_LEAST16_MAX INT_LEAST16_MIN "
    "INT_LEAST16_WIDTH INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST32_WIDTH INT_LEAST64_MAX INT_LEAST64_MIN "
    "INT_LEAST64_WIDTH INT_LEAST8_MAX INT_LEAST8_MIN INT_LEAST8_WIDTH INT_MAX INT_MIN INTMAX_C INTMAX_MAX "
    "INTMAX_MIN INTMAX_WIDTH INTPTR_MAX INTPTR_MIN intptr_t INTPTR_WIDTH L_ctermid L_cuserid L_tmpnam "
    "linux LITTLE_ENDIAN LLONG_MAX LLONG_MIN long LONG_MAX LONG_MIN M_1_PI M_2_PI M_2_SQRTPI M_E M_LN10 "
    "M_LN2 M_LOG10E M_LOG2E M_PI M_PI_2 M_PI_4 M_SQRT1_2 M_SQRT2 main MATH_ERREXCEPT math_errhandling "
    "MATH_ERRNO MAXFLOAT MB_CUR_MAX MB_LEN_MAX mutable namespace NAN NDEBUG new NFDBITS noexcept noreturn "
    "not not_eq NULL nullptr offsetof operator or or_eq P_tmpdir PDP_ENDIAN private protected PTRDIFF_MAX "
    "PTRDIFF_MIN ptrdiff_t PTRDIFF_WIDTH public RAND_MAX register reinterpret_cast requires restrict "
    "return SCHAR_MAX SCHAR_MIN SEEK_CUR SEEK_DATA SEEK_END SEEK_HOLE SEEK_SET short SHRT_MAX SHRT_MIN "
    "SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIG_ATOMIC_WIDTH signed SIZE_MAX size_t SIZE_WIDTH sizeof SNAN SNANF "
    "SNANL static static_assert static_cast stderr stdin stdout struct switch template this thread_local "
    "throw TMP_MAX true try typedef typeid typename typeof typeof_unqual UCHAR_MAX UINT16_C UINT16_MAX "
    "uint16_t "
    "UINT16_WIDTH UINT32_C UINT32_MAX uint32_t UINT32_WIDTH UINT64_C UINT64_MAX uint64_t UINT64_WIDTH "
    "UINT8_C UINT8_MAX uint8_t UINT8_WIDTH UINT_FAST16_MAX UINT_FAST16_WIDTH UINT_FAST32_MAX "
    "UINT_FAST32_WIDTH UINT_FAST64_MAX UINT_FAST64_WIDTH UINT_FAST8_MAX UINT_FAST8_WIDTH UINT_LEAST16_MAX "
    "UINT_LEAST16_WIDTH UINT_LEAST32_MAX UINT_LEAST32_WIDTH UINT_LEAST64_MAX UINT_LEAST64_WIDTH "
    "UINT_LEAST8_MAX UINT_LEAST8_WIDTH UINT_MAX UINTMAX_C UINTMAX_MAX UINTMAX_WIDTH UINTPTR_MAX uintptr_t "
    "UINTPTR_WIDTH ULLONG_MAX ULONG_MAX union unix unsigned USHRT_MAX using va_arg va_copy va_end va_list "
    "va_start virtual void volatile WCHAR_MAX WCHAR_MIN wchar_t WCHAR_WIDTH while WINT_MAX WINT_MIN "
    "wint_t WINT_WIDTH xor xor_eq ";

/* Functions that printed code calls. Only a field may have such a name. */
static const char claimed_by_calls[] =
    " abort abs acos acosh asin asinh atan atan2 atanh calloc cbrt ceil copysign cos cosh erf erfc exit "
    "exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod fpclassify fprintf fputs free frexp fwrite "
    "hypot isfinite isgreater isinf isless isnan isnormal isunordered labs ldexp lgamma llabs llround log "
    "log10 log1p log2 lrint lround malloc memchr memcmp memcpy memmove memset modf nan nearbyint "
    "nextafter pow printf putchar puts qsort realloc remainder rint round roundeven signbit sin sincos "
    "sinh snprintf sqrt strlen tan tanh tgamma trunc vsnprintf ";

/* What else the library has or compilers know, and what functions are given that ask for their thread.
 * Variables inside of functions may have these names, too. */
static const char claimed_outside[] =
    " _edata _end _etext _exit _fini _init _start a64l accept access alarm aligned_alloc arc4random "
    "arc4random_buf arc4random_uniform asctime asprintf assert_perror at_quick_exit atexit atof atoi atol "
    "basename bcmp bcopy be16toh be32toh be64toh bind blkcnt64_t blkcnt_t blksize_t brk bsearch bzero "
    "cabs cacos cacosh caddr_t canonicalize canonicalize_file_name carg casin casinh catan catanh ccos "
    "ccosh cexp chdir chmod chown cimag clearenv clearerr clock clock_t clockid_t clog close "
    "comparison_fn_t conj connect cpow cproj creal csin csinh csqrt ctan ctanh ctermid ctime cuserid "
    "daddl daddr_t ddivl dev_t dfmal difftime div div_t dmull double_t dprintf drand48 drand48_data drem "
    "dsqrtl dsubl dup dup2 ecvt environ erand48 exec execv execve explicit_bzero fadd fclose fcloseall "
    "fcntl fcvt fdiv fdopen feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feof "
    "feraiseexcept ferror fesetenv fesetexceptflag fesetround fetestexcept feupdateenv fflush ffma ffs "
    "fgetc fgetpos fgets FILE fileno finite float_t flockfile fmaximum fmaximum_mag fmaximum_mag_num "
    "fmaximum_num fmaxmag fmemopen fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag fmul fopen "
    "fopencookie fork fpos64_t fpos_t fputc fread freopen fromfp fromfpx fscanf fseek fsetpos fsqrt fstat "
    "fsub ftell ftello ftruncate ftrylockfile funlockfile gamma gcvt getc getchar getdelim getenv getline "
    "getloadavg getpayload getpid getpt gets getsubopt getw gid_t gmtime grantpt htobe16 htobe32 htole16 "
    "htole32 id_t ilogb imaxabs imaxdiv index initstate ino64_t ino_t intmax_t isalnum isalpha isatty "
    "isblank iscanonical iscntrl isdigit iseqsig isgraph isgreaterequal islessequal islessgreater islower "
    "isprint ispunct issignaling isspace issubnormal isupper iswalnum iswalpha iswblank iswcntrl iswdigit "
    "iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit isxdigit iszero j0 j1 jn jrand48 "
    "key_t kill l64a lcong48 ldiv ldiv_t le16toh le32toh le64toh link listen lldiv lldiv_t llogb llrint "
    "locale_t localeconv localtime loff_t logb longjmp lrand48 lseek max_align_t mblen mbstowcs mbtowc "
    "memccpy memfrob memmem mempcpy memrchr mkdir mkdtemp mkostemp mkostemps mkstemp mkstemps mktemp "
    "mktime mmap mode_t mrand48 munmap nextdown nexttoward nextup nice nlink_t nrand48 nullptr_t off64_t "
    "off_t on_exit open open_memstream pause pclose perror pid_t pipe poll popen posix pselect ptsname "
    "putc putenv putw qecvt qfcvt qgcvt quad_t quick_exit raise rand random random_data rawmemchr read "
    "reallocarray realpath recv register_t remove remquo rename renameat renameat2 rewind rindex rmdir "
    "rpmatch sbrk scalb scalbln scalbn scanf secure_getenv seed48 select send sendto setbuf setbuffer "
    "setenv setjmp setlinebuf setlocale setpayload setpayloadsig setstate setvbuf shutdown signal signgam "
    "significand sigset_t sleep socket sprintf srand srand48 srandom sscanf ssize_t stat std stime stpcpy "
    "stpncpy strcasecmp strcasestr strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup strdupa "
    "strerror strfromd strfromf strfromf128 strfromf32 strfromf32x strfromf64x strfroml strfry strftime "
    "strncasecmp strncat strncmp strncpy strndup strndupa strnlen strpbrk strrchr strsep strsignal strspn "
    "strstr strtod strtof strtof128 strtof32 strtof32x strtof64x strtok strtol strtold strtoq strtoul "
    "strtouq strverscmp strxfrm suseconds_t sync system tempnam thread threads time time_t timer_t times "
    "timespec timespec_get timeval tmpfile tmpnam toascii tolower totalorder totalordermag toupper "
    "towlower towupper truncate ufromfp ufromfpx uid_t uint uintmax_t ulong umask uname ungetc unlink "
    "unlockpt unsetenv useconds_t ushort usleep utime valloc vasprintf vdprintf vfork vfprintf vfscanf "
    "vprintf vscanf vsprintf vsscanf wait wcschr wcscmp wcslen wcsncmp wcstombs wctomb wmemchr wmemcmp "
    "wmemcpy wmemmove write y0 y1 yn ";

static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool starts(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* operator+ and its like: says which, and how long that is; 0: it is none. */
static int add_operator(Text *text, const char *name, const char *at) {
    static const struct {
        const char *symbol, *word; /* what begins like another comes first */
    } known[] = {
        {"==", "equal"},     {"!=", "not_equal"}, {"<=", "less_equal"}, {">=", "greater_equal"},
        {"<<", "shl"},       {">>", "shr"},       {"&&", "and"},        {"||", "or"},
        {"++", "increment"}, {"--", "decrement"}, {"()", "call"},       {"<", "less"},
        {">", "greater"},    {"+", "add"},        {"-", "sub"},         {"*", "mul"},
        {"/", "div"},        {"%", "mod"},        {"&", "bit_and"},     {"|", "bit_or"},
        {"^", "bit_xor"},    {"~", "bit_not"},    {"!", "not"},         {",", "comma"},
    };
    const char *symbol = at + strlen("operator");
    if (!starts(at, "operator") || (at > name && is_word_char(at[-1]))) return 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!starts(symbol, known[i].symbol)) continue;
        const char *end = symbol + strlen(known[i].symbol);
        text_printf(text, "operator_%s%s", known[i].word, *end == '=' ? "_assign" : "");
        return (int)(end - at) + (*end == '=');
    }
    return 0;
}

const char *emit_c_name(Arena *arena, const char *name) {
    Text text = {.arena = arena};
    int length;
    if (*name >= '0' && *name <= '9') text_char(&text, '_');
    for (const char *at = name; *at; at++) {
        if (starts(at, "bwd_diff(") || starts(at, "fwd_diff(")) {
            text_add(&text, (Str){at, 4});
            at += 8;
        } else if ((length = add_operator(&text, name, at)) > 0) {
            at += length - 1;
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
        size_t lanes = length + (starts(name + length, "_t") ? 2 : 0); /* int8_t4, but int8_add */
        return name[lanes] >= '1' && name[lanes] <= '4' ? lanes + 1 : length;
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

/* Macros of float.h and fenv.h, which a program may include before a header of ours. */
static bool is_of_family(const char *name) {
    static const char *const families[] = {"FLT_", "DBL_", "LDBL_", "FE_"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (starts(name, families[i])) return true;
    return false;
}

static bool is_word_of(Arena *arena, const char *words, const char *name, size_t length) {
    return strstr(words, format_text(arena, " %.*s ", (int)length, name)) != NULL;
}

/* In C each function is there for several types: sin, sinf, sinl, sinf32; and so are some macros. */
static bool is_claimed_by(Arena *arena, const char *words, const char *name) {
    static const char *const endings[] = {"", "f", "l", "f32", "f64", "f128", "f32x", "f64x"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t end = strlen(endings[i]);
        if (end && length < end + 3) continue; /* dof is no do for floats */
        if (strcmp(name + length - end, endings[i]) == 0 && is_word_of(arena, words, name, length - end))
            return true;
    }
    return false;
}

bool emit_is_claimed(Arena *arena, const char *name, NameScope scope) {
    if (strchr(name, ' ')) return false;
    if (name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'))) return true;
    if (is_helper(name) || is_of_family(name) || is_claimed_by(arena, claimed_everywhere, name)) return true;
    if (scope >= SCOPE_inside && is_claimed_by(arena, claimed_by_calls, name)) return true;
    if (scope < SCOPE_outside) return false;
    return starts(name, "rt_") || starts(name, "runtime_") || is_claimed_by(arena, claimed_outside, name);
}

const char *emit_outer_name(Arena *arena, const char *name) {
    const char *plain = emit_c_name(arena, name);
    if (!emit_is_claimed(arena, plain, SCOPE_outside)) return plain;
    bool is_type_of_library = starts(plain, "__") && plain[2] >= 'A' && plain[2] <= 'Z';
    return format_text(arena, "slope_%s", is_type_of_library ? plain + 2 : plain);
}
