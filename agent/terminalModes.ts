/** Assigns an opcode to each name. The opcodes are consecutive and begin with `first`. */
const names = (first: number, list: string) =>
  list.split(" ").map((name, index) => [first + index, name] as const);

/** The `stty` names of control characters, by their opcodes (RFC 4254, section 8). */
const CHARACTERS: ReadonlyMap<number, string> = new Map([
  ...names(1, "intr quit erase kill eof eol eol2 start stop susp"),
  ...names(12, "rprnt werase lnext"),
]);

/**
 * The `stty` names of on/off modes, by their opcodes. Modes for terminals without lowercase letters are omitted,
 * because some versions of `stty` do not support them. `stty` sets no mode at all if it does not support one of its
 * arguments.
 */
const SWITCHES: ReadonlyMap<number, string> = new Map([
  ...names(30, "ignpar parmrk inpck istrip inlcr igncr icrnl"),
  ...names(38, "ixon ixany ixoff imaxbel iutf8"),
  ...names(50, "isig icanon"),
  ...names(53, "echo echoe echok echonl noflsh tostop iexten echoctl echoke"),
  ...names(70, "opost"),
  ...names(72, "onlcr ocrnl onocr onlret"),
]);

/**
 * The first opcode for which RFC 4254 does not define the length of the value. Parsing stops at this opcode and at all
 * higher opcodes.
 */
const UNKNOWN = 160;
const ENTRY = 5;
/** The value that disables a control character. */
const OFF = 255;

/**
 * Returns the terminal modes of a client as arguments of `stty`. Speeds and the number of bits are omitted, because
 * they have no effect on a pseudo-terminal.
 * @param modes the modes in SSH's wire format: opcodes with 32-bit values
 */
export function sttyArguments(modes: Buffer): string[] {
  const settings: string[] = [];
  for (let at = 0; at + ENTRY <= modes.length; at += ENTRY) {
    const [opcode, value] = [modes.readUInt8(at), modes.readUInt32BE(at + 1)];
    if (opcode === 0 || opcode >= UNKNOWN) break;
    const character = CHARACTERS.get(opcode);
    const name = SWITCHES.get(opcode);
    if (character !== undefined && value <= OFF) settings.push(character, characterArgument(value));
    if (name !== undefined) settings.push(value === 0 ? `-${name}` : name);
  }
  return settings;
}

/** Formats a control character for `stty` in coreutils and BusyBox. BusyBox does not accept hexadecimal numbers. */
function characterArgument(code: number): string {
  if (code === OFF) return "undef";
  if (code === 127) return "^?";
  if (code < 32) return `^${String.fromCharCode(code + 64)}`;
  return code < 127 ? String.fromCharCode(code) : String(code);
}
