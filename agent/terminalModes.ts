/** Names that follow each other, by the opcode of the first. */
const names = (first: number, list: string) =>
  list.split(" ").map((name, index) => [first + index, name] as const);

/** Control characters by their opcodes (RFC 4254, section 8), as `stty` names them. */
const CHARACTERS: ReadonlyMap<number, string> = new Map([
  ...names(1, "intr quit erase kill eof eol eol2 start stop susp"),
  ...names(12, "rprnt werase lnext"),
]);

/**
 * Settings that are on or off, by their opcodes. Those of terminals without lower case are left out: not every `stty`
 * knows them, and it sets nothing if it does not know one.
 */
const SWITCHES: ReadonlyMap<number, string> = new Map([
  ...names(30, "ignpar parmrk inpck istrip inlcr igncr icrnl"),
  ...names(38, "ixon ixany ixoff imaxbel iutf8"),
  ...names(50, "isig icanon"),
  ...names(53, "echo echoe echok echonl noflsh tostop iexten echoctl echoke"),
  ...names(70, "opost"),
  ...names(72, "onlcr ocrnl onocr onlret"),
]);

/** Opcodes from here on have values of unknown lengths, and end the list. */
const UNKNOWN = 160;
const ENTRY = 5;
/** A control character that is off. */
const OFF = 255;

/**
 * Returns the terminal modes of a client as arguments of `stty`. Speeds and the number of bits have no effect on a
 * pseudo-terminal, and are omitted.
 * @param modes as on the wire: opcodes with 32-bit values
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

/** A character in the form that the `stty` of coreutils and that of BusyBox read alike: BusyBox reads no hexadecimal. */
function characterArgument(code: number): string {
  if (code === OFF) return "undef";
  if (code === 127) return "^?";
  if (code < 32) return `^${String.fromCharCode(code + 64)}`;
  return code < 127 ? String.fromCharCode(code) : String(code);
}
