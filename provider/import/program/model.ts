import type { Declarable } from "../../estate/liveObjects.ts";
import type { NamedObject } from "./names.ts";

/** The languages of programs. */
export const FORMATS = ["typescript", "yaml", "terraform"] as const;

/** The language of a program; `terraform` is a root module in Terraform's own. */
export type Format = (typeof FORMATS)[number];

/** How a program is written. */
export interface ProgramOptions {
  /** Name of the Pulumi project. */
  readonly project: string;
  /** Name of the namespace, for comments. */
  readonly namespace: string;
  /** Id of the namespace. */
  readonly tenant: string;
  /** Address of the service. */
  readonly service: string;
  readonly format: Format;
  /** Resources of the plugin in place of dynamic ones; always so in YAML. */
  readonly plugin: boolean;
  /** Every resource says `adopt: true`, for a program without a state. What cannot be adopted is left out. */
  readonly adopt: boolean;
}

/** A file of a program. */
export interface ProgramFile {
  /** Relative to the program's folder. */
  readonly path: string;
  readonly text: string;
}

/** A resource of a program, and the object that it is on the service. */
export interface ImportedResource {
  readonly type: string;
  readonly name: string;
  readonly id: string;
}

/** A program, and what its resources are on the service. */
export interface Program {
  readonly files: readonly ProgramFile[];
  readonly resources: readonly ImportedResource[];
  readonly leftOut: readonly Declarable[];
}

/** How the objects of one kind are written. */
export interface KindOfFile {
  readonly kind: string;
  /** The file's name, without its ending. */
  readonly file: string;
  /** The input that mostly equals the resource's name. */
  readonly naming?: string;
  /** The resource's name where the object has none. */
  readonly nameOf?: (object: Declarable) => string;
  /** Options of each resource: no destroy removes what has the option protect. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** The objects of one kind, by their names in the program. */
export interface KindOfProgram extends KindOfFile {
  readonly objects: readonly NamedObject[];
}
