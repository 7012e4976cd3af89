import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { type Listening, listening } from "./listening.ts";
import { shared } from "./shared.ts";

/** The data that a test needs about a server. */
interface ServerFacts {
  /** The version that the server reports. */
  readonly version: string;
  /** The time of the recording. Invitations and API keys expire after this time. */
  readonly time: string;
  readonly username: string;
  readonly tenant: string;
  /** The name of the namespace. */
  readonly namespace: string;
}

/** A request and its answer. Equal bodies are stored once. */
interface Exchange {
  readonly request: string;
  readonly status: number;
  readonly total?: string;
  readonly etag?: string;
  /** The index of the body in {@link Recording.bodies}. */
  readonly body: number;
}

/**
 * The exchanges of a case, in sections. Each section ends with a write, because the answers to reads change only after
 * a write.
 */
type Sections = Exchange[][];

/** A file with the recorded exchanges of one server. */
interface Recording {
  readonly facts: ServerFacts;
  readonly bodies: string[];
  /** The exchanges of logins, which all cases share. */
  readonly logins: Exchange[];
  readonly cases: Record<string, Sections>;
}

/** A server that records or replays its exchanges. */
export interface RecordedServer extends Listening {
  readonly facts: ServerFacts;
  /** Starts a case. The exchanges of each case are recorded separately. */
  begin(name: string): void;
  /** Loses the answer to the next write. The server still performs the write. */
  loseNextAnswer(): void;
  /** Loses the answers to all reads after the next write, until the returned function is called. */
  loseReadsAfterWrite(): () => void;
  /** Requests since {@link begin}, without logins. */
  readonly requests: readonly string[];
  /** Requests that the recording does not contain. */
  readonly unknown: readonly string[];
  /** Writes the recording. Only for a server that records. */
  save(): void;
}

const { RECORD, GATEHOUSE_URL = "", GATEHOUSE_USERNAME = "", GATEHOUSE_TENANT = "" } = process.env;

/** The password of the user of a recording. Recordings do not contain it. */
export const RECORDED_PASSWORD = process.env.GATEHOUSE_PASSWORD || "password";

/** The recording of a test's server. The environment selects the server: see {@link sharedRecording}. */
interface RecordingOptions {
  /** The order of the requests, as in {@link replayServer}. */
  readonly order?: "recorded" | "any";
  /** Fills the namespace that is recorded. */
  readonly prepare?: () => Promise<void>;
  /** False if the tests keep the clock of this machine. @default true */
  readonly movesClock?: boolean;
}

/** A recorded server, with the settings and requests of the clients that use it. */
export type SharedRecording = RecordedServer & {
  /** Returns the settings with which a program uses the server. */
  env(): Record<string, string>;
  /** Returns the requests of the test that are no reads. */
  writes(): string[];
};

/**
 * Starts a recorded server for the surrounding tests. Each test is a case of the recording, at the time of the recording,
 * and fails if it sends a request that the recording does not contain.
 *
 * To record, set RECORD, GATEHOUSE_URL, GATEHOUSE_USERNAME, GATEHOUSE_PASSWORD and GATEHOUSE_TENANT to a new namespace
 * of a server of version 0.27.
 */
export function sharedRecording(
  file: URL,
  { order, prepare, movesClock = true }: RecordingOptions = {},
): SharedRecording {
  const facts = {
    version: "0.27.0-rc.6",
    time: new Date().toISOString(),
    username: GATEHOUSE_USERNAME,
    tenant: GATEHOUSE_TENANT,
    namespace: "dev",
  };
  const server = shared(async () => {
    if (RECORD) await prepare?.();
    const started = RECORD ? await recordServer(GATEHOUSE_URL, facts, file) : await replayServer(file, order);
    return {
      ...started,
      env: () => settingsOf(started),
      writes: () => started.requests.filter((request) => !request.startsWith("GET ")),
      async stop() {
        started.save();
        await started.stop();
      },
    };
  });
  casesOf(() => server, movesClock);
  return server;
}

/** Returns the settings with which a program uses a recorded server. */
export const settingsOf = ({ url, facts }: RecordedServer): Record<string, string> => ({
  GATEHOUSE_URL: url,
  GATEHOUSE_USERNAME: facts.username,
  GATEHOUSE_PASSWORD: RECORDED_PASSWORD,
  GATEHOUSE_TENANT: facts.tenant,
  GATEHOUSE_RETRY_TIMEOUT: "2",
});

/** Makes each surrounding test a case of the recording, at the time of the recording. */
export function casesOf(server: () => RecordedServer, movesClock = true): void {
  beforeEach(({ task }) => {
    if (movesClock) vi.useFakeTimers({ now: new Date(server().facts.time), toFake: ["Date"] });
    server().begin(task.name);
  });
  afterEach(() => {
    vi.useRealTimers();
    expect(server().unknown.join("\n")).toBe("");
  });
}

/** Returns the line of a public key that is the same in each run, as recordings need it. */
export function recordedKey(name: string): string {
  const field = (bytes: Buffer | string) =>
    Buffer.concat([Buffer.from([0, 0, 0, Buffer.byteLength(bytes)]), Buffer.from(bytes)]);
  const blob = [field("ssh-ed25519"), field(createHash("sha256").update(name).digest())];
  return `ssh-ed25519 ${Buffer.concat(blob).toString("base64")}`;
}

const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");
const isLogin = (path: string) => /^\/api\/(login|auth)/.test(path);
const isRead = (method: string, path: string) => method === "GET" || isLogin(path);

/**
 * Masks the secrets in a body: the secrets of API keys, install keys, and the signatures of tokens. Clients read the other parts of a
 * token. Also shortens the announcement of a new namespace.
 */
const masked = (text: string): string =>
  text
    .replace(/("connection_announcement":")\\n\*[^"]*"/g, '$1Welcome."')
    .replace(/("token":"[^".]+\.[^".]+\.)[^"]+"/g, '$1signature"')
    .replace(/("key":")(?!1{8}-)[0-9a-f-]{36}"/g, '$111111111-2222-4333-8444-555555555555"')
    .replace(/("key_hint":")[0-9a-f]+"/g, '$111111111"')
    .replace(
      /("id":")[0-9a-f-]{36}(","name":"[^"]*","user_id")/g,
      "$111111111-2222-4333-8444-555555555555$2",
    );

/** Returns the text that identifies a request: logins by their path, other requests also by query and body. */
function requestText(method: string, target: string, hasKey: boolean, body: string): string {
  const [path = ""] = target.split("?");
  if (isLogin(path)) return `${method} ${path}`;
  const parts = [hasKey ? "(API key)" : "", method, target, body].filter((part) => part !== "");
  // The provider chooses the secret of a new API key and the name of a replaced API key at random.
  return parts
    .join(" ")
    .replace(/"key":"[0-9a-f-]{36}"/, '"key":"<secret>"')
    .replace(/-[0-9a-f]{8}(?="|$)/, "-<random>");
}

/**
 * Starts a server with the answers of a recording. A request that was not recorded is answered with 599.
 * @param order `recorded` if the client writes in the recorded order. For `any`, a request that its section does not
 * contain is answered from the nearest section, because commands send the requests of independent resources in any order
 */
export async function replayServer(
  file: URL,
  order: "recorded" | "any" = "recorded",
): Promise<RecordedServer> {
  const recording = JSON.parse(readFileSync(file, "utf8")) as Recording;
  /** The deletions since the last other write. In any order, a recorded read can be older than the deletions. */
  let deletions: Exchange[] = [];
  return serve(recording.facts, async (name, section, request, { method, path, body: sent }) => {
    const sections = recording.cases[name] ?? [];
    const distance = (index: number) => Math.abs(index - section);
    const nearest = sections.map((exchanges, index) => ({ exchanges, index }));
    nearest.sort((left, right) => distance(left.index) - distance(right.index) || left.index - right.index);
    const usable = order === "any" ? nearest : nearest.filter(({ index }) => index === section);
    const candidates = [...recording.logins, ...usable.flatMap(({ exchanges }) => exchanges)];
    const exchange = candidates.find((recorded) => recorded.request === request);
    if (!exchange) return derivedAnswer(recording, sections, section, request);
    const { status, total, etag, body } = exchange;
    const answer = { status, total, etag, text: recording.bodies[body] ?? "" };
    if (method === "DELETE" || sent === REVOCATION) deletions.push(exchange);
    else if (!isRead(method, path)) deletions = [];
    const isOlder = order === "any" && method === "GET" && status === 200 && deletions.length > 0;
    return isOlder ? withoutDeleted(answer, path.split("?")[0] ?? "", deletions) : answer;
  });
}

const targetOf = (request: string) => request.replace(/^\(API key\) /, "").split(" ");

/** A JSON object of a server. */
type Json = Record<string, unknown>;

/** The body of the request that revokes an install key. */
const REVOCATION = '{"revoked":true}';

/** Returns the items of a list, or an object, after a recorded write of another request. */
function afterWrite(body: unknown, path: string, { request, status }: Exchange): unknown {
  const [method = "", target = "", sent = ""] = targetOf(request);
  const steps = decodeURIComponent(target).split("/");
  const [last = "", parent = ""] = [steps.at(-1), steps.slice(0, -1).join("/")];
  const isItself = (item: unknown): boolean =>
    item === last ||
    Object.values(item as Json).includes(last) ||
    (item as { user?: Json }).user?.id === last;
  if (status >= 300) return body;
  if (method === "DELETE") {
    if (Array.isArray(body)) return path === parent ? body.filter((item) => !isItself(item)) : body;
    const object = body as Json;
    const name = parent.slice(path.length + 1);
    const list = object[name];
    return parent.startsWith(`${path}/`) && Array.isArray(list)
      ? { ...object, [name]: list.filter((item) => !isItself(item)) }
      : body;
  }
  const isRevoked = method === "PATCH" && sent === REVOCATION && path === parent;
  if (isRevoked && Array.isArray(body))
    return body.map((item) => (item.name === last ? { ...item, revoked: true } : item));
  return body;
}

/**
 * Derives the answer to the read of one object from the answer to the last write that returned the object. The recordings
 * are older than the reads before updates.
 */
function writtenObject(
  bodies: readonly string[],
  writes: readonly Exchange[],
  path: string,
): Answer | undefined {
  const id = decodeURIComponent(path).split("/").at(-1);
  const written = writes.findLast(({ status, body }) => {
    const text = bodies[body] ?? "";
    return status < 300 && text.startsWith("{") && (JSON.parse(text) as Json).id === id;
  });
  if (!written) return undefined;
  return { status: 200, total: undefined, etag: undefined, text: bodies[written.body] ?? "" };
}

/**
 * Derives the answer to a read that the recording does not contain. The recordings are older than the reads that prove a
 * deletion. The answer is the last recorded list of this path, or the last recorded object, without the objects, tags
 * and members that the recorded requests deleted since. If the case has no earlier list, a later list or a list of
 * another case is used. The length of a list is reduced by the number of removed objects.
 */
function derivedAnswer(
  { bodies, cases }: Recording,
  sections: Sections,
  section: number,
  request: string,
): Answer | undefined {
  const [method, target = ""] = targetOf(request);
  const [path = ""] = target.split("?");
  if (method !== "GET") return undefined;
  const readsIn = (recorded: Sections) =>
    recorded
      .flatMap((exchanges, index) => exchanges.map((exchange) => ({ exchange, index })))
      .filter(({ exchange }) => {
        const [read, from = ""] = targetOf(exchange.request);
        return read === "GET" && from.split("?")[0] === path && exchange.status === 200;
      });
  const reads = readsIn(sections);
  const earlier = reads.filter(({ index }) => index <= section);
  const elsewhere = [...reads, ...Object.values(cases).flatMap(readsIn)].map((read) => ({
    ...read,
    index: 0,
  }));
  const base =
    earlier.findLast(({ exchange }) => exchange.request === request) ?? earlier.at(-1) ?? elsewhere[0];
  if (!base) return writtenObject(bodies, sections.slice(0, section).flat(), path);
  const { status, total, etag, body } = base.exchange;
  const text = bodies[body] ?? "";
  return withoutDeleted({ status, total, etag, text }, path, sections.slice(base.index, section).flat());
}

/** Returns the answer to a read of a path after these writes. */
function withoutDeleted(answer: Answer, path: string, writes: readonly Exchange[]): Answer {
  const before: unknown = JSON.parse(answer.text);
  const after = writes.reduce((known: unknown, write) => afterWrite(known, path, write), before);
  const removed = Array.isArray(before) && Array.isArray(after) ? before.length - after.length : 0;
  const total = answer.total === undefined ? undefined : String(Number(answer.total) - removed);
  return { ...answer, total, text: JSON.stringify(after) };
}

/**
 * Starts a server that forwards requests to the server at `target` and records the exchanges. The recording contains
 * no password, no token and no secret of an API key.
 * @param file the file that {@link RecordedServer.save} writes; default: none
 */
export async function recordServer(target: string, facts: ServerFacts, file?: URL): Promise<RecordedServer> {
  const recording: Recording = { facts, bodies: [], logins: [], cases: {} };
  /** The mask of each install key, and of the digest of the key, which is its id. */
  const masks = new Map<string, string>();
  const maskedInstallKeys = (text: string) => {
    for (const [, key = ""] of text.matchAll(/"key":"([0-9a-f-]{36})"/g)) {
      if (masks.has(key)) continue;
      const mask = `11111111-2222-4333-8444-${String(masks.size).padStart(12, "0")}`;
      masks.set(key, mask).set(digestOf(key), digestOf(mask));
    }
    return text.replace(/[0-9a-f]{64}|[0-9a-f-]{36}/g, (id) => masks.get(id) ?? id);
  };
  const server = await serve(facts, async (name, section, request, { method, path, headers, body }) => {
    const answer = await fetch(target + path, { method, headers, ...(body !== "" && { body }) });
    const raw = await answer.text();
    const { status } = answer;
    const total = answer.headers.get("x-total-count") ?? undefined;
    const etag = answer.headers.get("etag") ?? undefined;
    const text = masked(path.includes("/install-key") ? maskedInstallKeys(raw) : raw);
    if (!recording.bodies.includes(text)) recording.bodies.push(text);
    recording.cases[name] ??= [];
    const sections = recording.cases[name];
    sections[section] ??= [];
    const list = isLogin(path) ? recording.logins : sections[section];
    const isNew = !list.some((exchange) => exchange.request === request);
    if (isNew)
      list.push({
        request,
        status,
        ...(total !== undefined && { total }),
        ...(etag !== undefined && { etag }),
        body: recording.bodies.indexOf(text),
      });
    return { status, total, etag, text: raw };
  });
  return { ...server, save: () => file && writeFileSync(file, `${JSON.stringify(recording)}\n`) };
}

interface Answer {
  readonly status: number;
  readonly total: string | undefined;
  readonly etag: string | undefined;
  readonly text: string;
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

type Respond = (name: string, section: number, request: string, sent: Sent) => Promise<Answer | undefined>;

const FORWARDED = [
  "authorization",
  "x-api-key",
  "content-type",
  "x-forwarded-host",
  "idempotency-key",
  "if-match",
  "gatehouse-declared-by",
];

async function serve(facts: ServerFacts, respond: Respond): Promise<RecordedServer> {
  const requests: string[] = [];
  const unknown: string[] = [];
  let current = "";
  let section = 0;
  let isLost = false;
  let lossOfReads: "none" | "after the next write" | "now" = "none";
  const server = createServer(async (incoming, outgoing) => {
    const { method = "GET", url: path = "/" } = incoming;
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString("utf8");
    const headers = Object.fromEntries(
      FORWARDED.flatMap((name) => (incoming.headers[name] ? [[name, String(incoming.headers[name])]] : [])),
    );
    const request = requestText(method, path, incoming.headers["x-api-key"] !== undefined, body);
    if (!isLogin(path)) requests.push(request);
    const own = section;
    const isWrite = !isRead(method, path);
    if (isWrite) section += 1;
    const answer = await respond(current, own, request, { method, path, headers, body });
    if (!answer) unknown.push(`${current} ${own}: ${request}`);
    if ((isWrite && isLost) || (method === "GET" && lossOfReads === "now")) {
      isLost = false;
      incoming.socket.destroy();
      return;
    }
    if (isWrite && lossOfReads === "after the next write") lossOfReads = "now";
    const { status, total, etag, text } = answer ?? { status: 599, text: "not recorded" };
    outgoing.writeHead(status, {
      "content-type": "application/json",
      ...(total !== undefined && { "x-total-count": total }),
      ...(etag !== undefined && { etag }),
    });
    outgoing.end(text);
  });
  return {
    ...(await listening(server)),
    facts,
    requests,
    unknown,
    begin(name) {
      current = name;
      section = 0;
      isLost = false;
      lossOfReads = "none";
      requests.length = 0;
    },
    loseNextAnswer: () => {
      isLost = true;
    },
    loseReadsAfterWrite() {
      lossOfReads = "after the next write";
      return () => {
        lossOfReads = "none";
      };
    },
    save() {},
  };
}
