/** Whether access is there only after the change, only before it, or both. */
export type MapChange = "gained" | "lost" | "kept";

export interface MapKey {
  readonly fingerprint: string;
  readonly name: string;
  /** Who holds it. Left out where that is not known. */
  readonly owner?: string;
  /** Left out where the key is there before and after. */
  readonly state?: "new" | "removed";
}

export interface MapDevice {
  readonly uid: string;
  readonly name: string;
  readonly tags: readonly string[];
  /** Left out where the device is there before and after. */
  readonly state?: "new" | "removed";
}

/** Keys or devices that stand side by side in their list and are folded into one node. */
export interface MapGroup {
  readonly name: string;
  readonly from: number;
  readonly count: number;
}

/** Access of one key to a set of devices, with all login names and addresses for which a change means the same. */
export interface MapEdge {
  readonly key: number;
  readonly devices: number;
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
  readonly change: MapChange;
  /** Place in `texts`: what allows it; of a lost one, what allowed it. */
  readonly rule: number;
  /** Place in `texts`: why it is gained or lost. */
  readonly cause?: number;
}

export interface MapSubtitle {
  readonly project?: string;
  readonly stack?: string;
  readonly service: string;
  readonly when: string;
  readonly domain: string;
}

/** Everything that an access map shows. Names may be anything: the page shows them as text. */
export interface AccessMapData {
  readonly title: string;
  readonly subtitle: MapSubtitle;
  readonly keys: readonly MapKey[];
  readonly devices: readonly MapDevice[];
  /** All keys, by who holds them. */
  readonly people: readonly MapGroup[];
  /** All devices, by their tags and, where many have the same, by the common part of their names. */
  readonly groups: readonly MapGroup[];
  /** Sets of devices as first and last place of each run: `[0, 3, 7, 7]` is 0 to 3, and 7. */
  readonly deviceSets: readonly (readonly number[])[];
  /** Sentences that edges point at. */
  readonly texts: readonly string[];
  /** The login names and addresses that were looked at. An edge that has all of them is for any. */
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
  readonly edges: readonly MapEdge[];
  /** What a reader must know besides, as sentences. */
  readonly notes: readonly string[];
}
