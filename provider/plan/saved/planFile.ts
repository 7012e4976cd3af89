import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { parseJson } from "@gatehouse-access/sdk/json";
import { z } from "zod";
import { EngineError, type Shown, type Stack } from "../../engine/index.ts";

const shown: z.ZodType<Shown> = z.json();
const fields = z.record(z.string(), shown);

const step = z.strictObject({
  op: z.enum(["create", "update", "replace", "delete", "import", "same"]),
  /** `PublicKey "ana"`, for sentences. */
  title: z.string(),
  /** What the program declares; null for a resource that the program has not. */
  declared: fields.nullable(),
  /** Which object it is about: its id where it has one, and the uid of the device that a selector means. */
  about: fields,
  /** The same fields as the state has them, after a refresh as they really are; null where the state has none. */
  found: fields.nullable(),
});

const object = z.strictObject({
  title: z.string(),
  fields,
});

const namespace = z.strictObject({
  name: z.string(),
  /** Lists that the credential may not read. */
  unread: z.array(z.string()),
  /** Keys, rules, members and API keys, by their kind and an id that never changes. */
  objects: z.record(z.string(), object),
  /** By uid. */
  devices: z.record(z.string(), object),
});

const reviewedContent = z.strictObject({
  project: z.string(),
  stack: z.string(),
  /** Address of the service. */
  service: z.string(),
  /** The namespace of resources that name none; left out where each names one. */
  home: z.string().optional(),
  /** When it was reviewed, RFC 3339. */
  at: z.string(),
  /** Whether the real objects were read first. */
  refresh: z.boolean(),
  /** By urn; an old object that an earlier replacement left over by urn and id. */
  steps: z.record(z.string(), step),
  /** By tenant: the namespaces that the plan is about and the credential may read. */
  namespaces: z.record(z.string(), namespace),
});

/** Everything that a later `up --plan` must find as it was when the plan was reviewed. */
export type ReviewedContent = z.output<typeof reviewedContent>;
/** What becomes of one resource. */
export type ReviewedStep = z.output<typeof step>;
/** An object on the service. */
export type ReviewedObject = z.output<typeof object>;
/** Values by their names. */
export type ReviewedFields = z.output<typeof fields>;

const [compress, decompress] = [promisify(gzip), promisify(gunzip)];

/** Most bytes that a plan is decompressed to: five times the size of a plan of 100,000 devices and 10,000 resources. */
const CONTENT_MAX = 256 * 1024 * 1024;

/** Stands before the content that is encrypted. A secret of a state begins as JSON, and so cannot be passed off as a plan. */
const MARK = "gatehouse reviewed plan 1 ";

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

const envelope = z.strictObject({
  /** What the file is, for people who open it. */
  gatehouse: z.literal("reviewed plan"),
  version: z.literal(1),
  project: z.string(),
  stack: z.string(),
  /** The content, compressed, and encrypted as the stack's secrets are. */
  content: z.string(),
});

type Sealing = Pick<Stack, "project" | "stack" | "encrypt" | "decrypt">;

/** Writes a reviewed plan to a file, encrypted as the stack's secrets are. */
export async function savePlan(file: string, stack: Sealing, reviewed: ReviewedContent): Promise<void> {
  const packed = (await compress(JSON.stringify(reviewed))).toString("base64");
  const sealed: z.input<typeof envelope> = {
    ...{ gatehouse: "reviewed plan", version: 1, project: stack.project, stack: stack.stack },
    content: await stack.encrypt(MARK + packed),
  };
  await writeFile(file, `${JSON.stringify(sealed, null, 2)}\n`, { mode: 0o600 });
}

/**
 * Reads a reviewed plan from its file.
 * @throws EngineError (`plan_file`) where the file is no plan, or a plan of another stack; PassphraseError where it was
 * encrypted with another key, or changed since
 */
export async function readPlan(file: string, stack: Sealing): Promise<ReviewedContent> {
  const { project, stack: name, content } = await readEnvelope(file);
  if (project !== stack.project || name !== stack.stack) {
    throw broken(file, `it is for ${project}/${name}, not for ${stack.project}/${stack.stack}`);
  }
  const opened = await stack.decrypt(content);
  const packed = opened.slice(MARK.length);
  if (!opened.startsWith(MARK) || !BASE64.test(packed))
    throw broken(file, "what is encrypted in it is no plan");
  const text = await decompress(Buffer.from(packed, "base64"), { maxOutputLength: CONTENT_MAX }).catch(
    (cause: Error) => {
      throw broken(file, `its content cannot be read: ${cause.message}`);
    },
  );
  const reviewed = reviewedContent.safeParse(parsedJson(text.toString()));
  if (!reviewed.success) throw broken(file, "its content is not as this version of gatehouse writes it");
  // The envelope is there for people. Only what was encrypted is proof.
  if (reviewed.data.project !== project || reviewed.data.stack !== name) {
    throw broken(file, "its content is for another stack than it says");
  }
  return reviewed.data;
}

async function readEnvelope(file: string): Promise<z.output<typeof envelope>> {
  const text = await readFile(file, "utf8").catch((cause: Error) => {
    throw broken(file, cause.message);
  });
  const parsed = envelope.safeParse(parsedJson(text));
  if (!parsed.success) throw broken(file, "it is no plan that gatehouse review --save has written");
  return parsed.data;
}

function parsedJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

const broken = (file: string, reason: string) =>
  new EngineError("plan_file", `--plan ${file} cannot be used: ${reason}.`);
