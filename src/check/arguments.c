/* Which argument of a call goes to which parameter. Packs take any number: they share equally what the other
 * parameters leave. */
#include "check/checker.h"

/* Without the one for the error. */
int sig_written(const FuncSig *sig) { return sig->nparams - (sig_throws(sig) ? 1 : 0); }

int sig_packs(const FuncSig *sig) {
    int n = 0;
    for (int i = 0; i < sig->nparams; i++) n += sig->params[i].is_pack;
    return n;
}

/* How many arguments each pack takes: they share what the other parameters leave. */
int sig_share(const FuncSig *sig, int nargs) {
    int packs = sig_packs(sig);
    return packs ? (nargs - (sig_written(sig) - packs)) / packs : 0;
}

/* The first argument of a parameter. */
int sig_first_arg(const FuncSig *sig, int nargs, int param) {
    int at = 0;
    for (int i = 0; i < param; i++) at += sig->params[i].is_pack ? sig_share(sig, nargs) : 1;
    return at;
}

int sig_param_of(const FuncSig *sig, int nargs, int arg) {
    int at = 0;
    while (at < sig->nparams && at <= arg && !sig->params[at].is_pack) at++;
    if (at > arg || at == sig->nparams) return arg;
    int share = sig_share(sig, nargs);
    for (int i = at; i < sig->nparams; i++) {
        at += sig->params[i].is_pack ? share : 1;
        if (arg < at) return i;
    }
    return arg;
}

int sig_required(const FuncSig *sig) {
    int n = sig_written(sig), packs = sig_packs(sig);
    if (packs) return n - packs;
    while (n > 0 && sig->params[n - 1].decl && sig->params[n - 1].decl->init) n--;
    return n;
}
