import type { Fleet } from "../../support/fleet.ts";

/** What differs from run to run and is known by a name: addresses, ids, credentials. */
export type Named = Readonly<Record<string, string>>;

/** A command of the CLI, or what somebody does past it. */
export type Step =
  | {
      /** Arguments of `pulumi`; a function where they name what differs from run to run. */
      readonly command: readonly string[] | ((named: Named) => readonly string[]);
      /** The program from this step on, in YAML, without its head. */
      readonly program?: (named: Named) => string;
      /** What it ends with. Default: 0. */
      readonly code?: number;
      /** The first such request is held until the plugin has answered that the user interrupts the command. */
      readonly interruptedAt?: string;
    }
  | {
      readonly byHand: string;
      /** Answers what is new and known by a name. */
      readonly act: (fleet: Fleet, named: Named) => Promise<Named | undefined>;
    };

/** What is recorded with a CLI, and replayed without. */
export interface Scenario {
  /** Also the name of the file with the recording. */
  readonly name: string;
  readonly users?: readonly string[];
  /** Furnishes the service; answers what differs from run to run. */
  readonly furnish: (fleet: Fleet) => Promise<Named>;
  /** Settings in the CLI's environment. */
  readonly env?: (named: Named) => Named;
  /** The stack's settings of the plugin; what is a secret by its nature is encrypted. */
  readonly config?: (named: Named) => Named;
  readonly steps: readonly Step[];
}
