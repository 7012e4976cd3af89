import type { Offer, SshMessage } from "./sshMessages.ts";

/** Headers of a request, by their names in lower case. */
export type Headers = Readonly<Record<string, string>>;

/** One thing that was said. */
export type Said =
  | {
      readonly request: {
        readonly method: string;
        readonly path: string;
        readonly headers: Headers;
        readonly body?: unknown;
      };
    }
  /** A request to become a WebSocket. */
  | { readonly upgrade: { readonly path: string; readonly headers: Headers } }
  | { readonly answer: { readonly status: number; readonly body?: unknown } }
  /** A line of a tunnel. */
  | { readonly line: unknown }
  /** The HTTP request on a connection that was picked up. */
  | { readonly head: string }
  | { readonly ident: string }
  | { readonly kexinit: Offer }
  | { readonly ssh: SshMessage }
  /** A WebSocket is closed; 1006: without a word. */
  | { readonly close: number }
  /** What a test did, or what came of it. */
  | { readonly told: unknown };

/** What is said in one of these ways. */
export type Of<Name extends string> = Extract<Said, Record<Name, unknown>>;

/**
 * A line of a recording. Where: the service's HTTP, the device's tunnel, the n-th connection that the agent picked up in
 * a scene, or the test.
 */
export interface Line {
  readonly scene: string;
  readonly on: string;
  readonly from: "agent" | "gateway" | "test";
  readonly said: Said;
}

/** What is another one in each run, in place of which a recording has a name. The longer ones first. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN[^-]*-----[^-]*-----END[^-]*-----(\\n|\n)?/g, "<public key>"],
  [/\bey[\w-]+\.[\w-]+\.[\w-]+/g, "<token>"],
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "<tenant>"],
  [/\b([0-9a-f]{2}:){15}[0-9a-f]{2}\b/g, "<fingerprint>"],
  [/\b([0-9a-f]{2}:){5}[0-9a-f]{2}\b/g, "<mac>"],
  [/\b[0-9a-f]{64}\b/g, "<id>"],
  [/revdial\.dialer=[0-9a-f]{32}/g, "revdial.dialer=<instance>"],
  [/uuid=[0-9a-f]{32}/g, "uuid=<dial>"],
  [/\b(127\.0\.0\.1|localhost):\d+/g, "<address>"],
  [/"signature":"[A-Za-z0-9+/=]+"/g, '"signature":"<signature>"'],
];

/** What was said, with names in place of what is another one in each run. */
export function named<T>(said: T, secret: string): T {
  let text = JSON.stringify(said);
  for (const [pattern, name] of NAMES) text = text.replaceAll(pattern, name);
  return JSON.parse(text.replaceAll(secret, "<password>"), (key, value) => {
    if (typeof value !== "string") return value;
    // The modes of a terminal are those of the client's own version.
    return ["key", "signature", "modes"].includes(key) ? `<${key}>` : value;
  });
}

/** Headers that a connection has of its own. */
const OWN = new Set(["host", "content-length", "sec-websocket-key", "accept-encoding"]);

/** The headers that are said, without a connection's own. */
export const spoken = (headers: Readonly<Record<string, string | string[] | undefined>>): Headers =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (OWN.has(name) ? [] : [[name, String(value)]])),
  );

/** An agent that scenes are played with: the real one, or what was recorded of it. */
export interface SceneAgent {
  /** Rejects when something else is said than was recorded. */
  readonly wrong: Promise<never>;
  /** Begins a scene; the agent is connected once the first one is begun. */
  begin(scene: string): void;
  /** A test tells what it did, or what came of it: a recording keeps it, and later ones must be the same. */
  tell(told: unknown): void;
  /**
   * Resolves when all was said.
   * @throws Error something else was said than was recorded, or less
   */
  done(): Promise<void>;
  stop(): Promise<void>;
}

/** What an agent is started with. */
export interface SceneOptions {
  readonly url: string;
  readonly tenant: string;
  /** The password of the login, which no recording has. */
  readonly password: string;
}
