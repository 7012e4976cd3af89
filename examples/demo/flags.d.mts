export declare const HELP: string;

/** The flags of the demo. */
interface Flags {
  readonly engine?: string;
  readonly destroy: boolean;
  readonly keep?: string;
  readonly help: boolean;
}

export declare function readFlags(args: readonly string[]): Flags;
