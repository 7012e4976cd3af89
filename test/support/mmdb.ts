// Writes small databases in the MaxMind DB format, version 2.0 (https://maxmind.github.io/MaxMind-DB/): a search tree
// of 24-bit records, the data, and the metadata.

type Value = string | number | Uint16 | { readonly [key: string]: Value } | readonly Value[];

class Uint16 {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

const MAP = 7;
const STRING = 2;
const DOUBLE = 3;
const UINT16 = 5;
const ARRAY = 11;

/** Encodes the type and the size of a value. A type number above seven takes an additional byte. */
function control(type: number, size: number): Buffer {
  if (size > 28) throw new Error("values of this writer have at most 28 bytes or items");
  return type <= 7 ? Buffer.from([(type << 5) | size]) : Buffer.from([size, type - 7]);
}

function encode(value: Value): Buffer {
  if (typeof value === "string") {
    const bytes = Buffer.from(value);
    return Buffer.concat([control(STRING, bytes.length), bytes]);
  }
  if (typeof value === "number") {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return Buffer.concat([control(DOUBLE, 8), bytes]);
  }
  if (value instanceof Uint16) {
    return Buffer.concat([control(UINT16, 2), Buffer.from([value.value >> 8, value.value & 255])]);
  }
  if (Array.isArray(value)) return Buffer.concat([control(ARRAY, value.length), ...value.map(encode)]);
  const entries = Object.entries(value);
  return Buffer.concat([
    control(MAP, entries.length),
    ...entries.flat().map((part) => encode(part as Value)),
  ]);
}

interface Node {
  readonly children: [Node | number | undefined, Node | number | undefined];
}

const newNode = (): Node => ({ children: [undefined, undefined] });

/** Returns the path of an IPv4 address in the IPv6 search tree, as bits. IPv4 addresses are below ::/96. */
const bitsOf = (address: string): number[] => [
  ...Array<number>(96).fill(0),
  ...address.split(".").flatMap((part) => [...Number(part).toString(2).padStart(8, "0")].map(Number)),
];

/** Returns the bytes of a database that maps IPv4 addresses to values. */
export function mmdbOf(records: Readonly<Record<string, Value>>): Buffer {
  const root = newNode();
  const nodes = [root];
  const data: Buffer[] = [];
  let offset = 0;
  for (const [address, value] of Object.entries(records)) {
    const bits = bitsOf(address);
    let node = root;
    for (const bit of bits.slice(0, -1)) {
      let next = node.children[bit];
      if (next === undefined || typeof next === "number") {
        next = newNode();
        nodes.push(next);
        node.children[bit as 0 | 1] = next;
      }
      node = next;
    }
    node.children[bits.at(-1) as 0 | 1] = offset;
    const bytes = encode(value);
    data.push(bytes);
    offset += bytes.length;
  }
  const tree = Buffer.alloc(nodes.length * 6);
  for (const [index, { children }] of nodes.entries()) {
    for (const [side, child] of children.entries()) {
      const record =
        child === undefined
          ? nodes.length
          : typeof child === "number"
            ? nodes.length + 16 + child
            : nodes.indexOf(child);
      tree.writeUIntBE(record, index * 6 + side * 3, 3);
    }
  }
  const metadata = encode({
    node_count: new Uint16(nodes.length),
    record_size: new Uint16(24),
    ip_version: new Uint16(6),
    database_type: "Test-City",
    languages: ["en"],
    binary_format_major_version: new Uint16(2),
    binary_format_minor_version: new Uint16(0),
    build_epoch: new Uint16(1),
    description: { en: "of a test" },
  });
  const marker = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1");
  return Buffer.concat([tree, Buffer.alloc(16), ...data, marker, metadata]);
}

/** Returns the record that a location database has for a location with these coordinates. */
export const at = (latitude: number, longitude: number): Value => ({ location: { latitude, longitude } });
