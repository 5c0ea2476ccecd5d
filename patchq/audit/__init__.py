"""Which word an environment deserves for one queue, each provable from bytes.

Pure: locks, a survey, the ledger's last receipt and the queue's past in, a `Finding`
out. Exactly one word comes out, by the first rule that holds:

1. *absent*: the distribution is not installed, and no record says that patches were on.
2. *interrupted*: a journal is there, and it is of the distribution that is installed.
3. *orphaned*: state.json says that this queue's patches are on, and its dist-info or the
   bytes are gone.
4. The record has patches of this queue:
   *drifted*: a touched file is neither what is recorded nor, where nothing is, pristine;
   or the record says other than the lock whose patches it names (`patchq.audit.held`);
   *current*: they are the whole of today's series, by effect or by text;
   *partial*: they are the lower part of it;
   *behind*: they are a series, or the lower part of one, that a commit of the queue had;
   *unknown*: they are in no commit of the queue, or the queue is not in sight.
5. The record has none of them:
   *unrecorded*: the touched files are as after the first n patches of a series, today's
   or a commit's;
   *partial*: each touched file is as some patch of the series leaves it, half of them before
   and half after;
   *drifted* (there is a record of other queues) or *unmanaged* (there is none): a file that
   the queue names differs from RECORD, or from the lock where RECORD does not list it;
   *orphaned*: the ledger's last receipt left patches on, and the files are pristine;
   *missing*: the files are the base of a series;
   *upstream*: no series fits, and the sketches hold (`patchq.conversation.upstream`);
   *no series* for what is installed.

*unreachable* is said of hosts that nobody could ask (`patchq.fleet`).
"""
