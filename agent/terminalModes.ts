/** Control characters by their opcodes (RFC 4254, section 8), as `stty` names them. */
const CHARACTERS = new Map<number, string>([
  ...([
    [1, "intr"],
    [2, "quit"],
    [3, "erase"],
    [4, "kill"],
    [5, "eof"],
    [6, "eol"],
    [7, "eol2"],
  ] as const),
  ...([
    [8, "start"],
    [9, "stop"],
    [10, "susp"],
    [12, "rprnt"],
    [13, "werase"],
    [14, "lnext"],
  ] as const),
]);

/** Settings that are on or off, by their opcodes. */
const SWITCHES = new Map<number, string>([
  ...([
    [30, "ignpar"],
    [31, "parmrk"],
    [32, "inpck"],
    [33, "istrip"],
    [34, "inlcr"],
    [35, "igncr"],
  ] as const),
  ...([
    [36, "icrnl"],
    [37, "iuclc"],
    [38, "ixon"],
    [39, "ixany"],
    [40, "ixoff"],
    [41, "imaxbel"],
  ] as const),
  ...([
    [42, "iutf8"],
    [50, "isig"],
    [51, "icanon"],
    [52, "xcase"],
    [53, "echo"],
    [54, "echoe"],
  ] as const),
  ...([
    [55, "echok"],
    [56, "echonl"],
    [57, "noflsh"],
    [58, "tostop"],
    [59, "iexten"],
  ] as const),
  ...([
    [60, "echoctl"],
    [61, "echoke"],
    [70, "opost"],
    [71, "olcuc"],
    [72, "onlcr"],
    [73, "ocrnl"],
  ] as const),
  ...([
    [74, "onocr"],
    [75, "onlret"],
  ] as const),
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
