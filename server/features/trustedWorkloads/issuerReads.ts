import { BusyError } from "../../errors.ts";

/** Maximum numbers of issuers that are read at the same time: for all users together, and for one user. */
const READS = 64;
const READS_PER_USER = 4;

const tooMany = () =>
  new BusyError("the keys of too many issuers are being read; try again", { "Retry-After": "1" });

interface Read<T> {
  readonly ownerId: string;
  readonly controller: AbortController;
  readonly end: Promise<T>;
}

/**
 * The running reads of issuers. Users choose the issuers, and an issuer may be slow. Therefore, the reads are
 * distributed among the users who own the namespaces. No user can occupy all reads. A user without a running read is
 * never rejected while another user has several.
 */
export class IssuerReads<T> {
  /** The running reads by issuer, oldest first. */
  readonly #running = new Map<string, Read<T>>();

  /**
   * Runs a read. Concurrent calls for an issuer share one read.
   * @param read reads the issuer; stops if the signal is aborted
   * @throws BusyError too many reads are running
   */
  async run(
    issuer: string,
    ownerOf: () => Promise<string>,
    read: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const running = this.#running.get(issuer);
    if (running !== undefined) return running.end;
    const ownerId = await ownerOf();
    // A different call may have begun the read in the meantime.
    const begun = this.#running.get(issuer);
    if (begun !== undefined) return begun.end;
    this.#makeRoom(ownerId);
    const controller = new AbortController();
    const end = read(controller.signal).finally(() => {
      if (this.#running.get(issuer)?.controller === controller) this.#running.delete(issuer);
    });
    this.#running.set(issuer, { ownerId, controller, end });
    return end;
  }

  /**
   * Ensures that the user can start a read. If the total number of running reads has reached its maximum, aborts the
   * oldest read of the user who has the most running reads.
   * @throws BusyError the user has the maximum number of reads. Also thrown if the total has reached its maximum, and
   *   no other user has at least two reads more than this user.
   */
  #makeRoom(ownerId: string): void {
    const byOwner = Map.groupBy(this.#running, ([, read]) => read.ownerId);
    const own = byOwner.get(ownerId) ?? [];
    if (own.length >= READS_PER_USER) throw tooMany();
    if (this.#running.size < READS) return;
    const [most = []] = [...byOwner.values()].sort((left, right) => right.length - left.length);
    const [oldest] = most;
    if (oldest === undefined || most.length < 2 || most.length <= own.length + 1) throw tooMany();
    const [issuer, read] = oldest;
    this.#running.delete(issuer);
    read.controller.abort();
  }
}
