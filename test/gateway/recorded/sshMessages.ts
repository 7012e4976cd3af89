/** How a field is written: a number, a yes or no, text with its length, or text up to the end of the message. */
type Kind = "number" | "boolean" | "text" | "rest";
type Fields = readonly (readonly [name: string, kind: Kind])[];
interface Layout {
  readonly name: string;
  readonly fields: Fields;
  /** Fields that follow, by the value of another one; of any other value the rest is one piece. */
  readonly following?: { readonly by: string; readonly of: Readonly<Record<string, Fields>> };
}

/** A message of SSH with its fields. Texts are of bytes, as Latin-1 has them. */
export interface SshMessage {
  readonly message: string;
  readonly [field: string]: string | number | boolean;
}

const recipient = ["channel", "number"] as const;
const nothing: Layout["fields"] = [recipient];
const SIZE: Fields = [
  ["columns", "number"],
  ["rows", "number"],
  ["width", "number"],
  ["height", "number"],
];

/** RFC 4252 to 4254: what passes once keys are exchanged. */
const LAYOUTS: Readonly<Record<number, Layout>> = {
  1: {
    name: "DISCONNECT",
    fields: [
      ["reason", "number"],
      ["description", "text"],
      ["language", "text"],
    ],
  },
  5: { name: "SERVICE_REQUEST", fields: [["service", "text"]] },
  6: { name: "SERVICE_ACCEPT", fields: [["service", "text"]] },
  7: { name: "EXT_INFO", fields: [["extensions", "rest"]] },
  50: {
    name: "USERAUTH_REQUEST",
    fields: [
      ["user", "text"],
      ["service", "text"],
      ["method", "text"],
    ],
    following: {
      by: "method",
      of: {
        none: [],
        password: [
          ["change", "boolean"],
          ["password", "text"],
        ],
        publickey: [
          ["signed", "boolean"],
          ["algorithm", "text"],
          ["key", "text"],
          ["signature", "rest"],
        ],
      },
    },
  },
  51: {
    name: "USERAUTH_FAILURE",
    fields: [
      ["methods", "text"],
      ["partial", "boolean"],
    ],
  },
  52: { name: "USERAUTH_SUCCESS", fields: [] },
  60: {
    name: "USERAUTH_PK_OK",
    fields: [
      ["algorithm", "text"],
      ["key", "text"],
    ],
  },
  80: {
    name: "GLOBAL_REQUEST",
    fields: [
      ["request", "text"],
      ["reply", "boolean"],
      ["data", "rest"],
    ],
  },
  81: { name: "REQUEST_SUCCESS", fields: [["data", "rest"]] },
  82: { name: "REQUEST_FAILURE", fields: [] },
  90: {
    name: "CHANNEL_OPEN",
    fields: [
      ["type", "text"],
      ["sender", "number"],
      ["window", "number"],
      ["packet", "number"],
      ["data", "rest"],
    ],
  },
  91: {
    name: "CHANNEL_OPEN_CONFIRMATION",
    fields: [recipient, ["sender", "number"], ["window", "number"], ["packet", "number"], ["data", "rest"]],
  },
  92: {
    name: "CHANNEL_OPEN_FAILURE",
    fields: [recipient, ["reason", "number"], ["description", "text"], ["language", "text"]],
  },
  93: { name: "CHANNEL_WINDOW_ADJUST", fields: [recipient, ["bytes", "number"]] },
  94: { name: "CHANNEL_DATA", fields: [recipient, ["data", "text"]] },
  95: { name: "CHANNEL_EXTENDED_DATA", fields: [recipient, ["kind", "number"], ["data", "text"]] },
  96: { name: "CHANNEL_EOF", fields: nothing },
  97: { name: "CHANNEL_CLOSE", fields: nothing },
  98: {
    name: "CHANNEL_REQUEST",
    fields: [recipient, ["request", "text"], ["reply", "boolean"]],
    following: {
      by: "request",
      of: {
        shell: [],
        exec: [["command", "text"]],
        subsystem: [["subsystem", "text"]],
        "pty-req": [["term", "text"], ...SIZE, ["modes", "text"]],
        "window-change": SIZE,
        "exit-status": [["status", "number"]],
      },
    },
  },
  99: { name: "CHANNEL_SUCCESS", fields: nothing },
  100: { name: "CHANNEL_FAILURE", fields: nothing },
};

/** What is left of a message when all is known of it. */
const REST: Fields = [["rest", "rest"]];

/** @throws Error it is of no kind that is known */
export function decode(payload: Buffer): SshMessage {
  const layout = LAYOUTS[payload[0] ?? 0];
  if (layout === undefined) throw new Error(`message ${payload[0]} is not known`);
  const found: Record<string, string | number | boolean> = {};
  let at = 1;
  const text = (length: number) => {
    at += length;
    return payload.toString("latin1", at - length, at);
  };
  const number = () => {
    at += 4;
    return payload.readUInt32BE(at - 4);
  };
  const read = { number, boolean: () => text(1) !== "\0", text: () => text(number()), rest: () => "" };
  const take = (fields: Fields) => {
    for (const [name, kind] of fields) {
      const value = kind === "rest" ? text(payload.length - at) : read[kind]();
      // The rest is mostly nothing.
      if (kind !== "rest" || value !== "") found[name] = value;
    }
  };
  take(layout.fields);
  if (layout.following) take(layout.following.of[String(found[layout.following.by])] ?? REST);
  return { message: layout.name, ...found };
}

/** @throws Error it is of no kind that is known */
export function encode({ message, ...fields }: SshMessage): Buffer {
  const [type, layout] = Object.entries(LAYOUTS).find(([, { name }]) => name === message) ?? [];
  if (layout === undefined) throw new Error(`${message} is not known`);
  const number = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  };
  const more = layout.following && (layout.following.of[String(fields[layout.following.by])] ?? REST);
  const parts = [...layout.fields, ...(more ?? [])].map(([name, kind]) => {
    const value = fields[name];
    if (kind === "number") return number(Number(value));
    if (kind === "boolean") return Buffer.from([value === true ? 1 : 0]);
    const bytes = Buffer.from(String(value ?? ""), "latin1");
    return kind === "text" ? Buffer.concat([number(bytes.length), bytes]) : bytes;
  });
  return Buffer.concat([Buffer.from([Number(type)]), ...parts]);
}

/** Names of the algorithms that one side offers, each list in its order. */
export interface Offer {
  readonly kex: readonly string[];
  readonly serverHostKey: readonly string[];
  readonly cipher: readonly string[];
  readonly mac: readonly string[];
}

/** Reads what either side says before its messages are encrypted: its name, and what it offers. */
export class Introduction {
  #bytes: Buffer | undefined = Buffer.alloc(0);
  #named = false;
  readonly #says: (what: { readonly ident: string } | { readonly kexinit: Offer }) => void;

  constructor(says: (what: { readonly ident: string } | { readonly kexinit: Offer }) => void) {
    this.#says = says;
  }

  read(data: Buffer): void {
    if (this.#bytes === undefined) return;
    this.#bytes = Buffer.concat([this.#bytes, data]);
    const end = this.#named ? -1 : this.#bytes.indexOf("\n");
    if (end !== -1) {
      this.#named = true;
      this.#says({ ident: this.#bytes.toString("latin1", 0, end).trimEnd() });
      this.#bytes = this.#bytes.subarray(end + 1);
    }
    if (!this.#named || this.#bytes.length < 4) return;
    if (this.#bytes.length < 4 + this.#bytes.readUInt32BE(0)) return;
    // Length, padding, type, cookie.
    this.#says({ kexinit: offerOf(this.#bytes.subarray(4 + 1 + 1 + 16)) });
    this.#bytes = undefined;
  }
}

function offerOf(lists: Buffer): Offer {
  let at = 0;
  const list = () => {
    const length = lists.readUInt32BE(at);
    at += 4 + length;
    return lists.toString("latin1", at - length, at).split(",");
  };
  const [kex, serverHostKey, cipher] = [list(), list(), list()];
  // Both directions are offered the same.
  list();
  return { kex, serverHostKey, cipher, mac: list() };
}
