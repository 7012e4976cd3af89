import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const schema = z.object({
  typeName: z.string(),
  id: z.string(),
  /** The ids of the instances that the successor replaces, newest first. See `PrivateData.inheritedFrom`. */
  instances: z.array(z.string()),
});

/** A replacement of one or more instances by a successor that declares the same object. */
type Replacement = z.output<typeof schema>;

type ReplacedObject = Pick<Replacement, "typeName" | "id">;

/**
 * The state of a replacement. `planned`: the successor has not been created yet. `done`: the successor has inherited
 * the object.
 */
type Step = "planned" | "done";

/**
 * The replacements in a root module in which the successor may inherit the object. A successor inherits the object if
 * it declares the same object as the replaced instance, and if Terraform creates the successor before it deletes the
 * replaced instance. Terraform passes the private data of the replaced instance to the plan of the successor, but not
 * to its apply, which runs in a different process. The plan therefore records the replacement in a file in Terraform's
 * data directory. Without the record, the create rejects the existing object. Each object has its own file, because
 * several processes can run at the same time.
 */
export class Replacements {
  readonly #folder: string | undefined;
  /** The records, if they are kept only in this process. */
  readonly #inMemory = new Map<string, Replacement>();

  /**
   * Opens the records of replacements.
   * @param dataFolder Terraform's data directory; undefined to keep the records only in this process
   */
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

  /** Returns the planned replacement of an object, or undefined if no replacement is planned. */
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
   * Removes a replaced instance from the record of the object. Called when the instance is deleted from the state.
   * @returns true if a successor has inherited the object from this instance
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
    // The new content replaces the file by a rename, so that the file is complete even if the process is killed.
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
