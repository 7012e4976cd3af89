/** Number of states that one 32-bit word of a set of states represents. */
const WORD = 32;

const SLASH = "/".charCodeAt(0);

/**
 * A pattern for a claim of a token: the value that a trusted workload requires for this claim. `*` matches any string
 * without a slash, and `**` matches any string. All other characters match themselves.
 *
 * The class simulates an automaton. The automaton is in state `n` when the first `n` literal characters of the required
 * value have matched. If a wildcard precedes the next literal character, the automaton can stay in its state. The class
 * tracks all possible states as a set of bits, so the comparison time is at most proportional to the product of both
 * lengths.
 */
export class ClaimPattern {
  readonly #required: string;
  /** The literal characters before the first wildcard. */
  readonly #beginning: string;
  /** True if the value has no wildcard. */
  readonly isLiteral: boolean;
  #automaton: Automaton | undefined;

  /** @param required the required value */
  constructor(required: string) {
    this.#required = required;
    const wildcard = required.indexOf("*");
    this.isLiteral = wildcard === -1;
    this.#beginning = this.isLiteral ? required : required.slice(0, wildcard);
  }

  /** Returns true if the required value matches at least one of the strings. */
  matchesAny(texts: ReadonlySet<string>): boolean {
    if (this.isLiteral) return texts.has(this.#required);
    for (const text of texts) if (this.matches(text)) return true;
    return false;
  }

  /** Returns true if the required value matches the whole string. */
  matches(text: string): boolean {
    if (this.isLiteral) return text === this.#required;
    if (!text.startsWith(this.#beginning)) return false;
    this.#automaton ??= automatonOf(this.#required);
    return accepts(this.#automaton, text);
  }
}

/** An automaton. A set of its states is a list of 32-bit words. */
interface Automaton {
  /** Number of literal characters. The state with this number is the accepting state. */
  readonly length: number;
  /** Number of words in a set of states. */
  readonly words: number;
  /** For each character code, the states that the automaton leaves when it reads this character. */
  readonly leaving: ReadonlyMap<number, Uint32Array>;
  /** The states in which the automaton can stay because of a wildcard. */
  readonly staying: Uint32Array;
  /** The states in which the automaton can also stay at a slash, because of the wildcard `**`. */
  readonly stayingAtSlash: Uint32Array;
}

function automatonOf(required: string): Automaton {
  const parts = required.split(/(\*+)/);
  const length = parts.reduce((sum, part) => (part.startsWith("*") ? sum : sum + part.length), 0);
  const words = Math.ceil((length + 1) / WORD);
  const newSet = () => new Uint32Array(words);
  const [leaving, staying, stayingAtSlash] = [new Map<number, Uint32Array>(), newSet(), newSet()];
  let state = 0;
  for (const part of parts) {
    if (part.startsWith("*")) {
      addTo(staying, state);
      if (part.length > 1) addTo(stayingAtSlash, state);
      continue;
    }
    for (let place = 0; place < part.length; place += 1) {
      const code = part.charCodeAt(place);
      const states = leaving.get(code) ?? newSet();
      leaving.set(code, states);
      addTo(states, state);
      state += 1;
    }
  }
  return { length, words, leaving, staying, stayingAtSlash };
}

function addTo(states: Uint32Array, state: number): void {
  const word = Math.floor(state / WORD);
  states[word] = (states[word] ?? 0) | (1 << (state % WORD));
}

function accepts({ length, words, leaving, staying, stayingAtSlash }: Automaton, text: string): boolean {
  // Each literal character must match a character of the string.
  if (text.length < length) return false;
  const states = new Uint32Array(words);
  addTo(states, 0);
  for (let place = 0; place < text.length; place += 1) {
    const code = text.charCodeAt(place);
    const stays = code === SLASH ? stayingAtSlash : staying;
    const leaves = leaving.get(code);
    let [carried, all] = [0, 0];
    for (let word = 0; word < words; word += 1) {
      const present = states[word] ?? 0;
      const left = leaves === undefined ? 0 : present & (leaves[word] ?? 0);
      const next = (present & (stays[word] ?? 0)) | (left << 1) | carried;
      carried = left >>> (WORD - 1);
      states[word] = next;
      all |= next;
    }
    if (all === 0) return false;
  }
  const word = states[Math.floor(length / WORD)] ?? 0;
  return (word & (1 << (length % WORD))) !== 0;
}
