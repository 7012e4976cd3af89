/** Jobs that begin at once in one turn of the event loop; further ones get a turn each. */
const CROWD = 32;
/** Jobs that may overtake a waiting one. */
const OVERTAKING = 4;

/**
 * Spreads jobs over the turns of the event loop. A turn accepts one new connection, and begins all requests that have
 * arrived on others: if each takes a millisecond, several hundred busy clients make a turn so long that a new
 * connection waits for seconds. So a crowd of jobs begins one by one, each in a turn of its own, overtaking jobs first.
 * This costs some throughput, so jobs in small numbers begin at once.
 */
export class LoopTurns {
  readonly #overtaking: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  /** Jobs that have overtaken the first waiting one. */
  #overtook = 0;
  /** Jobs that arrived in the present turn. */
  #came = 0;

  /** @param overtakes goes before jobs that do not overtake, a few at a time */
  begin(overtakes: boolean, job: () => void): void {
    if (this.#came === 0) setImmediate(this.#endTurn);
    this.#came += 1;
    if (this.#came <= CROWD && this.#overtaking.length + this.#waiting.length === 0) job();
    else (overtakes ? this.#overtaking : this.#waiting).push(job);
  }

  readonly #endTurn = (): void => {
    this.#came = 0;
    const next = this.#next();
    if (next === undefined) return;
    this.#came = 1;
    setImmediate(this.#endTurn);
    next();
  };

  #next(): (() => void) | undefined {
    const overtakes = this.#waiting.length === 0 || this.#overtook < OVERTAKING;
    const overtaking = overtakes ? this.#overtaking.shift() : undefined;
    this.#overtook = overtaking === undefined ? 0 : this.#overtook + 1;
    return overtaking ?? this.#waiting.shift();
  }
}
