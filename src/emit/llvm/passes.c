/* LLVM's passes, by level, and what its own settings have to be for them. */
#include "emit/llvm/llvm.h"
#include <llvm-c/Support.h>

/* LLVM builds `default<O3>` with limits that its text of the same passes does not have: loops are unrolled
 * altogether up to a cost of 300, not 150, and functions inlined up to 250, not 225, or 525 where they are
 * called often. Without the first, the gradient of a mixture model takes 1.7 times as long, and a filter's
 * forward derivative 3.2 times. The next three leave code as it is: LLVM would measure a block of up to 500
 * instructions anew after each two that it has made one; and in a block with up to 1000 accesses to memory it
 * would ask of each pair whether they may be put in another order. For each value that finds no register, it
 * would look at up to 10,000 ways between blocks where the value could stay in one. What it knows of memory,
 * it uses where it selects instructions, too: without, accesses of a long block hang on one another, and it
 * goes through all of them again and again.
 *
 * A loop of 5 to 15 rounds that is too long to be written out would become vectors only where the last one
 * can leave out elements; on arm64 without scalable vectors, the rounds that are left can as well be done one
 * by one, if LLVM estimates that this gains: the gradient of a recurrent network takes 0.84 of the time.
 *
 * LLVM's settings exist once its own constructors have run. Those of one library run in the order in which it
 * was linked: this file comes after LLVM (CMakeLists.txt). */
__attribute__((constructor)) static void set_limits(void) {
    static const char *const words[] = {
        "slope",
        "-unroll-threshold-default=300",
        "-inlinedefault-threshold=250",
        "-locally-hot-callsite-threshold=525",
        "-machine-combiner-inc-threshold=0",
        "-dag-maps-huge-region=300",
        "-grow-region-complexity-budget=300",
        "-vectorizer-min-trip-count=5"}; /* the last: unless vectors can leave out elements */
    int count = (int)(sizeof words / sizeof *words);
    LLVMParseCommandLineOptions(target_masks_vectors() ? count - 1 : count, words, "");
}

#define COMBINE "instcombine<max-iterations=1;no-verify-fixpoint>"
#define ROTATE  "loop-rotate<header-duplication>"
#define TIDY    "simplifycfg<switch-range-to-icmp>"

/* What is left of `default<O3>`, in its order. Slope has done the like of what is not there, or its code has
 * nothing that it could be done to; benchmarks take as long without, 0.97 to 1.03: a search for values that a
 * loop stores and loads again (loop-load-elim, 4 % of the time for all passes), loop invariants before loops
 * are rotated and once more after they are unrolled (7 %), three of eight times that instructions are
 * combined (5 %), and what there is for C++, coroutines, OpenMP, profiles. Functions have to be done before
 * and after they are inlined: done once, afterwards, loops over them that were vectors are not any more. At
 * the end of that, operands are put in order once more: what loops were before they were unrolled has new
 * neighbours. Functions for vectors that are our own (lanes.c) become a part of their callers once all calls
 * of them are there. */
static const char most[] =
    "globaldce,inferattrs,"
    "function<eager-inv>(simplifycfg,sroa<modify-cfg>,early-cse<>),"
    "ipsccp,globalopt,"
    "function<eager-inv>(" COMBINE "," TIDY "),"
    "always-inline,require<globals-aa>,function(invalidate<aa>),"
    "cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,argpromotion,"
    "function<eager-inv;no-rerun>("
    "sroa<modify-cfg>,early-cse<memssa>,jump-threading,correlated-propagation," TIDY ","
    "aggressive-instcombine,tailcallelim," TIDY ",reassociate,constraint-elimination,"
    "loop-mssa(" ROTATE ",licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>)," TIDY "," COMBINE
    ","
    "loop(loop-idiom,indvars,simple-loop-unswitch<nontrivial;trivial>,loop-deletion,loop-unroll-full),"
    "sroa<modify-cfg>,vector-combine,mldst-motion,gvn<>,sccp,bdce," COMBINE ","
    "jump-threading,correlated-propagation,adce,memcpyopt,dse,"
    "simplifycfg<switch-range-to-icmp;hoist-common-insts;sink-common-insts>," COMBINE
    ",reassociate,early-cse<memssa>),"
    "function-attrs)),"
    "deadargelim,globaldce,rpo-function-attrs,"
    "function<eager-inv>("
    "float2int,loop(" ROTATE ",loop-deletion),inject-tli-mappings,loop-vectorize,infer-alignment," COMBINE ","
    "simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-lookup;no-keep-loops;hoist-common-insts;"
    "sink-common-insts>)";
static const char rest[] =
    "function<eager-inv>(slp-vectorizer,vector-combine),always-inline,function<eager-inv>(loop-unroll<O3>,"
    "sroa<preserve-cfg>,infer-alignment,"
    "loop-mssa(licm<allowspeculation>),loop-sink,instsimplify,div-rem-pairs,tailcallelim,"
    "simplifycfg<switch-range-to-icmp;speculate-unpredictables>),"
    "globaldce,constmerge";

Passes passes_of(int level, bool is_device) {
    /* What nobody calls goes first: of kernels that do several items at once, the form for one. */
    static const char *const all[] = {"default<O0>", "globaldce,default<O1>", "globaldce,default<O2>",
                                      "globaldce,default<O3>"};
    return level == 3 && !is_device ? (Passes){most, rest} : (Passes){all[level], NULL};
}
