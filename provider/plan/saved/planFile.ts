import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { parseJson } from "@gatehouse-access/sdk/json";
import { z } from "zod";
import { EngineError, fileError, type Shown, type Stack } from "../../engine/index.ts";

const shown: z.ZodType<Shown> = z.json();
const fields = z.record(z.string(), shown);

const step = z.strictObject({
  op: z.enum(["create", "update", "replace", "delete", "import", "same"]),
  /** Title in sentences: `PublicKey "ana"`. */
  title: z.string(),
  /** The declared inputs; null if the program does not declare the resource. */
  declared: fields.nullable(),
  /**
   * Facts about the object, if they are known: its id, the uid of the device that the resource selects, and
   * `retainOnDelete`.
   */
  about: fields,
  /**
   * The input fields before the plan; null if the resource is not in the state. After a refresh, they have their live
   * values. Without a refresh, they have their values in the state.
   */
  found: fields.nullable(),
});

const object = z.strictObject({ title: z.string(), fields });

const namespace = z.strictObject({
  name: z.string(),
  /** Lists that the credential may not read. */
  unread: z.array(z.string()),
  /** All objects except devices, by kind and key. */
  objects: z.record(z.string(), object),
  devices: z.record(z.string(), object),
});

const reviewedContent = z.strictObject({
  project: z.string(),
  stack: z.string(),
  service: z.string(),
  /** The namespace of resources without a tenant; omitted if all resources have a tenant. */
  home: z.string().optional(),
  /** Time of the review, RFC 3339. */
  at: z.string(),
  /** True if the plan was created after a refresh of the live objects. */
  refresh: z.boolean(),
  /** Steps by URN. An old object that an unfinished replacement left in the state is stored by its URN and id. */
  steps: z.record(z.string(), step),
  /** The namespaces of the plan that the credential may read, by tenant. */
  namespaces: z.record(z.string(), namespace),
});

/** The content of a plan file: the facts that `up --plan` compares before it applies the reviewed plan. */
export type ReviewedContent = z.output<typeof reviewedContent>;
export type ReviewedStep = z.output<typeof step>;
export type ReviewedObject = z.output<typeof object>;
export type ReviewedFields = z.output<typeof fields>;

const [compress, decompress] = [promisify(gzip), promisify(gunzip)];

/** Maximum size of a plan in bytes: five times the size of a plan with 100,000 devices and 10,000 resources. */
const CONTENT_MAX = 256 * 1024 * 1024;

/**
 * The version of the plan file format. If the captured fields change, the version must change too. Otherwise a
 * comparison with an older plan would report these fields as differences.
 */
const VERSION = 2;

/**
 * A prefix that is added to the content before the encryption. Secrets of the state are encrypted with the same key,
 * but they are JSON and do not begin with this prefix. So `up --plan` rejects a file that contains a secret of the
 * state instead of a plan.
 */
const MARK = `gatehouse reviewed plan ${VERSION} `;

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

const envelope = z.strictObject({
  gatehouse: z.literal("reviewed plan"),
  version: z.literal(VERSION),
  project: z.string(),
  stack: z.string(),
  /** The compressed content, encrypted with the key of the stack's secrets. */
  content: z.string(),
});

/** The part of the envelope that is the same in all versions. */
const header = z.object({ gatehouse: z.literal("reviewed plan"), version: z.int() });

type Sealing = Pick<Stack, "project" | "stack" | "encrypt" | "decrypt">;

/** Writes a reviewed plan to a file, encrypted with the key of the stack's secrets. */
export async function savePlan(file: string, stack: Sealing, reviewed: ReviewedContent): Promise<void> {
  const packed = (await compress(JSON.stringify(reviewed))).toString("base64");
  const sealed: z.input<typeof envelope> = {
    gatehouse: "reviewed plan",
    version: VERSION,
    project: stack.project,
    stack: stack.stack,
    content: await stack.encrypt(MARK + packed),
  };
  const written = writeFile(file, `${JSON.stringify(sealed, null, 2)}\n`, { mode: 0o600 });
  await written.catch(fileError("plan_file", "write", file));
}

/**
 * Reads a reviewed plan from its file.
 * @throws EngineError (`plan_file`) if the file is not a plan, or is a plan of another stack; PassphraseError if the
 *   content was modified, or encrypted with a different key
 */
export async function readPlan(file: string, stack: Sealing): Promise<ReviewedContent> {
  const { project, stack: name, content } = await readEnvelope(file);
  if (project !== stack.project || name !== stack.stack) {
    throw broken(file, `it is for ${project}/${name}, not for ${stack.project}/${stack.stack}`);
  }
  const opened = await stack.decrypt(content);
  const packed = opened.slice(MARK.length);
  if (!opened.startsWith(MARK) || !BASE64.test(packed))
    throw broken(file, "its encrypted content is not a plan");
  const text = await decompress(Buffer.from(packed, "base64"), { maxOutputLength: CONTENT_MAX }).catch(
    (cause: Error) => {
      throw broken(file, `its content cannot be read: ${cause.message}`);
    },
  );
  const { data: reviewed } = reviewedContent.safeParse(jsonIn(text.toString()));
  if (!reviewed) throw broken(file, "its content does not have the format of this version of gatehouse");
  // The header may have been modified, because only the encrypted content is authenticated.
  if (reviewed.project !== project || reviewed.stack !== name) {
    throw broken(file, "its content and its header are for different stacks");
  }
  return reviewed;
}

async function readEnvelope(file: string): Promise<z.output<typeof envelope>> {
  const text = await readFile(file, "utf8").catch(fileError("plan_file", "read", `the plan ${file}`));
  const json = jsonIn(text);
  const { version = VERSION } = header.safeParse(json).data ?? {};
  if (version !== VERSION) {
    throw broken(
      file,
      "another version of gatehouse wrote this file, so save the plan again with gatehouse review --save",
    );
  }
  const { data } = envelope.safeParse(json);
  if (!data) throw broken(file, "gatehouse review --save did not write this file");
  return data;
}

/** Parses a JSON string. Returns undefined if the string is not valid JSON. */
function jsonIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

const broken = (file: string, reason: string) =>
  new EngineError("plan_file", `Cannot use --plan ${file}: ${reason}.`);
