/** Works that are begun in one turn of the event loop as they come; where there are more, each has a turn of its own. */
const CROWD = 32;
/** Works that overtake one that waits. */
const OVERTAKING = 4;

/**
 * Spreads work over the turns of the event loop. A turn takes one new connection, and begins whatever has come on all
 * others: where that takes a millisecond each, several hundred busy clients make a turn so long that a new one waits for
 * seconds. So a crowd is begun one by one, each in a turn of its own, those first that overtake. That costs some
 * throughput, which is why what comes in small numbers is begun at once.
 */
export class LoopTurns {
  readonly #overtaking: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  /** Works that have overtaken the first that waits. */
  #overtook = 0;
  /** Works that came in the present turn. */
  #came = 0;

  /** @param overtakes goes before what waits and does not overtake, a few at a time */
  begin(overtakes: boolean, work: () => void): void {
    if (this.#came === 0) setImmediate(this.#endTurn);
    this.#came += 1;
    if (this.#came <= CROWD && this.#overtaking.length + this.#waiting.length === 0) work();
    else (overtakes ? this.#overtaking : this.#waiting).push(work);
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
