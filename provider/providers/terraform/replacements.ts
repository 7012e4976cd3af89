import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const schema = z.object({
  typeName: z.string(),
  id: z.string(),
  /** The ids of the instances that a successor replaces, newest first. See `PrivateData.inheritedFrom`. */
  instances: z.array(z.string()),
});

/** A replacement of the instances that manage one object. */
type Replacement = z.output<typeof schema>;

type ReplacedObject = Pick<Replacement, "typeName" | "id">;

/** The state of a replacement. `done`: the successor has inherited the object. */
type Step = "planned" | "done";

/**
 * The replacements in a root module that may keep their object. If Terraform creates a successor before it deletes the
 * replaced instance, and both declare the same object, the successor inherits the object. Terraform passes the private
 * data of the replaced instance to the plan of the successor, but not to the apply, which runs in a different process.
 * The plan therefore records the replacement in a file of Terraform's data directory. Without the record, a create
 * rejects the existing object. Each object has its own file, because several processes can run at the same time.
 */
export class Replacements {
  readonly #folder: string | undefined;
  /** The records of a process that has no data directory. */
  readonly #inMemory = new Map<string, Replacement>();

  /** @param dataFolder Terraform's data directory; undefined to keep the records only in this process */
  constructor(dataFolder?: string) {
    this.#folder = dataFolder === undefined ? undefined : join(dataFolder, "gatehouse", "replacements");
  }

  /**
   * Records a planned replacement.
   * @throws Error if the file cannot be written
   */
  plan(replacement: Replacement): void {
    this.#write("planned", replacement);
  }

  /** Returns true if a replacement of an object of this type is planned. */
  hasPlanned(typeName: string): boolean {
    const names = this.#folder === undefined ? [...this.#inMemory.keys()] : filesIn(this.#folder);
    return names.some((name) => name.startsWith(`planned-${typeName}-`));
  }

  /** Returns the planned replacement of an object. */
  planned(object: ReplacedObject): Replacement | undefined {
    return this.#read("planned", object);
  }

  /** Deletes the record of an object's planned replacement. */
  dropPlanned(object: ReplacedObject): void {
    this.#drop("planned", object);
  }

  /**
   * Records that a successor has inherited an object. The deletion of the replaced instances then does not delete the
   * object.
   * @throws Error if the file cannot be written
   */
  complete({ typeName, id, instances }: Replacement): void {
    const earlier = this.#read("done", { typeName, id })?.instances ?? [];
    this.#write("done", { typeName, id, instances: [...new Set([...instances, ...earlier])] });
    this.dropPlanned({ typeName, id });
  }

  /** Returns true if a successor has inherited the object of this instance. */
  isPast(object: ReplacedObject, instance: string): boolean {
    return this.#read("done", object)?.instances.includes(instance) ?? false;
  }

  /**
   * Deletes the record of a replaced instance, because the state will no longer contain the instance. Returns true if a
   * successor has inherited the object.
   */
  endRecord(object: ReplacedObject, instance: string): boolean {
    const done = this.#read("done", object);
    if (!done?.instances.includes(instance)) return false;
    const instances = done.instances.filter((other) => other !== instance);
    if (instances.length > 0) this.#write("done", { ...done, instances });
    else this.#drop("done", object);
    return true;
  }

  #write(step: Step, replacement: Replacement): void {
    const name = nameOf(step, replacement);
    if (this.#folder === undefined) {
      this.#inMemory.set(name, replacement);
      return;
    }
    mkdirSync(this.#folder, { recursive: true });
    // The rename ensures that the file is complete even if the process is killed.
    const file = join(this.#folder, name);
    writeFileSync(`${file}.${process.pid}`, JSON.stringify(replacement));
    renameSync(`${file}.${process.pid}`, file);
  }

  #read(step: Step, object: ReplacedObject): Replacement | undefined {
    const name = nameOf(step, object);
    if (this.#folder === undefined) return this.#inMemory.get(name);
    try {
      return schema.parse(JSON.parse(readFileSync(join(this.#folder, name), "utf8")));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  #drop(step: Step, object: ReplacedObject): void {
    const name = nameOf(step, object);
    this.#inMemory.delete(name);
    if (this.#folder !== undefined) rmSync(join(this.#folder, name), { force: true });
  }
}

const nameOf = (step: Step, { typeName, id }: ReplacedObject): string =>
  `${step}-${typeName}-${createHash("sha256").update(id).digest("hex").slice(0, 32)}`;

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
