"""Files: parts, quota, damage, and outputs that workers add. Who may read what: rights.py."""

import hashlib
import os

from case import MIB, FleetCase


class Blobs(FleetCase):
    def put(self, data, login="ann", skip=(), damage=()):
        """Uploads all parts but those in `skip`; what blob_finish says."""
        caller, sha, parts = getattr(self, login), hashlib.sha256(data).hexdigest(), max(1, -(-len(data) // MIB))
        state = caller.blob_begin(sha, len(data), parts)
        for part in range(parts):
            if part not in skip and part not in state["have"]:
                piece = data[part * MIB:(part + 1) * MIB]
                caller.blob_put(sha, part, bytes(len(piece)) if part in damage else piece)
        return caller.blob_finish(sha)

    def test_parts(self):
        data = os.urandom(2 * MIB + 5)
        sha = hashlib.sha256(data).hexdigest()
        self.assertEqual(self.ann.blob_state(sha), {"whole": False, "have": []})
        with self.refused("TW409", "has 2 of 3 parts"):
            self.put(data, skip=[1])
        self.assertEqual(self.ann.blob_begin(sha, len(data), 3), {"whole": False, "have": [0, 2]})
        with self.refused("TW404", "no part 0 of a whole blob"):
            self.ann.blob_get(sha, 0)
        self.assertIs(self.put(data), True)
        self.assertEqual(self.ann.blob_state(sha), {"whole": True, "have": [0, 1, 2]})
        self.assertEqual(b"".join(bytes(self.ann.blob_get(sha, part)) for part in range(3)), data)
        self.assertIs(self.ann.blob_finish(sha), True)
        with self.refused("TW404"):
            self.ann.blob_get(sha, 3)
        self.ann.blob_put(sha, 1, b"other bytes")  # whole: nothing changes
        self.assertEqual(bytes(self.ann.blob_get(sha, 1)), data[MIB:2 * MIB])
        self.assertEqual(self.keeper.one("SELECT attstorage FROM pg_attribute WHERE attrelid = 'fleet.blob_parts'::regclass AND "
                                         "attname = 'data'"), "e", "not compressed")  # fmt: skip

    def test_those_that_are_whole(self):
        whole, part, hers = (os.urandom(MIB + 1) for _ in range(3))
        shas = [hashlib.sha256(data).hexdigest() for data in (whole, part, hers)]
        self.put(whole)
        with self.refused("TW409"):
            self.put(part, skip=[1])
        self.put(hers, login="bob")
        self.keeper.rows("UPDATE fleet.blobs SET used = used - interval '2 days' RETURNING 1")
        listed = "{" + ",".join([*shas, "0" * 64]) + "}"
        self.assertEqual(self.ann.one("SELECT fleet.blobs_whole(%s)", (listed,)), [shas[0]])
        self.assertEqual(self.keeper.rows("SELECT sha256 FROM fleet.blobs WHERE used > clock_timestamp() - interval '1 day'"),
                         [(shas[0],)], "they count as used")  # fmt: skip

    def test_small_ones(self):
        for data in (b"", b"x", bytes(MIB), bytes(MIB + 1)):
            self.assertIs(self.put(data), True)
            self.assertEqual(bytes(self.ann.blob_get(hashlib.sha256(data).hexdigest(), 0)), data[:MIB])

    def test_damage(self):
        data = os.urandom(MIB + 5)
        sha = hashlib.sha256(data).hexdigest()
        self.assertIs(self.put(data, damage=[1]), False)
        self.assertEqual(self.ann.blob_state(sha), {"whole": False, "have": []}, "all parts are gone")
        self.assertIs(self.put(data), True)

    def test_damage_in_the_database(self):
        """Somebody finds out; blob_check forgets what is damaged, so that it is uploaded anew."""
        data, other = os.urandom(MIB + 5), os.urandom(7)
        sha = hashlib.sha256(data).hexdigest()
        self.put(data)
        self.put(other)
        self.assertIs(self.ann.blob_check(sha), True)
        self.assertEqual(self.ann.blob_state(sha), {"whole": True, "have": [0, 1]}, "sound: it stays")
        self.change("UPDATE fleet.blob_parts SET data = 'xxxxx' WHERE part = 1")
        self.assertIs(self.bob.blob_check(sha), True, "not his")
        self.assertIs(self.ann.blob_check(sha), False)
        self.assertEqual(self.ann.blob_state(sha), {"whole": False, "have": []})
        self.assertIs(self.put(data), True)
        self.change("DELETE FROM fleet.blob_parts WHERE part = 1")
        self.assertIs(self.ann.blob_check(sha), False)
        self.assertIs(self.put(data), True)
        self.assertIs(self.ann.blob_check(hashlib.sha256(other).hexdigest()), True)

    def test_bad_parts(self):
        data = bytes(MIB + 5)
        sha = hashlib.sha256(data).hexdigest()
        with self.refused("TW404", "was not begun"):
            self.ann.blob_put(sha, 0, data[:MIB])
        with self.refused("TW404"):
            self.ann.blob_finish(sha)
        for bytes_, parts in ((len(data), 1), (len(data), 3), (-1, 1), (0, 0), ((1000 << 20) + 1, 1001)):
            with self.refused("TW400"):
                self.ann.blob_begin(sha, bytes_, parts)
        for name in ("x", sha.upper(), sha[1:], sha + "\n", None):
            with self.refused("TW400"):
                self.ann.blob_begin(name, 1, 1)
        self.ann.blob_begin(sha, len(data), 2)
        for part, piece in ((0, data[:5]), (1, data[:MIB]), (2, data[:5]), (-1, data[:MIB]), (1, b"")):
            with self.refused("TW400"):
                self.ann.blob_put(sha, part, piece)
        with self.refused("TW409", "not 7"):
            self.ann.blob_begin(sha, 7, 1)

    def test_quota(self):
        self.keeper.login_set("ann", None, None, None, 100)
        self.put(b"a" * 60)
        with self.refused("TW429", "more than 100 bytes"):
            self.put(b"b" * 41)
        self.put(b"b" * 40)
        self.put(b"b" * 40)  # there already
        self.put(b"c" * 90, login="bob")

    def test_outputs(self):
        job = self.submitted(n=1)[0]
        worker = self.worker()
        worker.claim()
        data = os.urandom(MIB + 9)
        sha = hashlib.sha256(data).hexdigest()
        put = lambda part, piece, size=len(data), parts=2: self.wes.worker_blob_put(  # noqa: E731
            worker.id, worker.secret, worker.device, worker.token, job, sha, size, parts, part, piece)
        self.assertIs(put(1, data[MIB:]), False)
        self.assertIs(put(0, data[:MIB]), True)
        self.assertIs(put(0, data[:MIB]), True, "again, after a lost answer")
        self.assertEqual(bytes(self.ann.blob_get(sha, 1)), data[MIB:], "it is ann's")
        with self.refused("TW404"):
            self.bob.blob_get(sha, 1)
        with self.refused("TW403", "does not name"):
            self.wes.worker_blob_get(worker.id, worker.secret, worker.device, worker.token, job, sha, 0)
        self.keeper.login_set("ann", None, None, None, MIB + 9)
        with self.refused("TW429"):
            self.wes.worker_blob_put(worker.id, worker.secret, worker.device, worker.token, job, "0" * 64, 1, 1, 0, b"x")
        self.keeper.login_set("ann", None, None, None, 1 << 30)
        self.assertIs(self.wes.worker_blob_put(worker.id, worker.secret, worker.device, worker.token, job, "0" * 64, 1, 1, 0, b"x"), False)
        self.assertEqual(self.ann.blob_state("0" * 64), {"whole": False, "have": []}, "not what its name says")
        worker.give_back()
        with self.refused("TW403", "not leased"):
            put(0, data[:MIB])
