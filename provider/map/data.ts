/**
 * Change of access. `gained`: only after the change. `lost`: only before the change. `kept`: before and after the
 * change.
 */
export type MapChange = "gained" | "lost" | "kept";

/** A public key, or a user or service account in identity mode. */
export interface MapKey {
  /** The fingerprint of a key; otherwise the id. */
  readonly fingerprint: string;
  readonly name: string;
  /** Omitted for a public key. */
  readonly kind?: "user" | "service account";
  /** The e-mail address of the member who owns the key. Omitted without an owner, and if the owner is not known. */
  readonly owner?: string;
  /** The last change of the object as a text, such as `last changed by user ana`. Only in a map of drift. */
  readonly changedBy?: string;
  /**
   * `new`: only after the change. `removed`: only before the change. Omitted if the key exists before and after the
   * change.
   */
  readonly state?: "new" | "removed";
}

export interface MapDevice {
  readonly uid: string;
  readonly name: string;
  readonly tags: readonly string[];
  /**
   * `new`: only after the change. `removed`: only before the change. Omitted if the device exists before and after the
   * change.
   */
  readonly state?: "new" | "removed";
}

/** A group of adjacent keys or devices that the map shows as one node. */
export interface MapGroup {
  readonly name: string;
  readonly from: number;
  readonly count: number;
}

/**
 * Access of one key to a set of devices, with all login names and addresses for which change, rule and cause are the
 * same.
 */
export interface MapEdge {
  readonly key: number;
  readonly devices: number;
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
  readonly change: MapChange;
  /**
   * Index in `texts` of the rule that allows the access. For lost access: the rule that allowed it before the change.
   */
  readonly rule: number;
  /** Index in `texts` of the reason why the access is gained or lost, or of its condition before the change. */
  readonly cause?: number;
  /** The condition of the access; omitted for access without a condition. */
  readonly condition?: MapCondition;
  /** The time when the access ends, as text; omitted for access that does not expire. */
  readonly until?: string;
  /** Indexes in {@link AccessMapData.times} of the times with this access; omitted if the access exists at all times. */
  readonly times?: readonly number[];
}

/** A condition of access: the login waits, or the service does not show whether the user has an SSH key. */
type MapCondition = "reauthentication" | "approval" | "unknown";

/** A sentence about a rule or a cause. */
export interface MapText {
  readonly text: string;
  /** The regular expressions that `text` replaces by words, each with its subject: `login ^root$`. */
  readonly patterns: readonly string[];
}

export interface MapSubtitle {
  readonly project?: string;
  readonly stack?: string;
  readonly service: string;
  readonly when: string;
  readonly evaluated: string;
}

/** The data that an access map shows. Names may contain any characters, since the page shows them as text. */
export interface AccessMapData {
  readonly title: string;
  readonly subtitle: MapSubtitle;
  /** True if the map compares the declared with the live access. Gained access is then unauthorized. */
  readonly isDrift: boolean;
  /** The word for an item of `keys`. */
  readonly subject: "key" | "user";
  /** Words for each condition. */
  readonly conditions: Readonly<Record<MapCondition, string>>;
  readonly keys: readonly MapKey[];
  readonly devices: readonly MapDevice[];
  /** All keys, grouped by owner. */
  readonly people: readonly MapGroup[];
  /** All devices, grouped by tags. Large groups are split by the common part of the names. */
  readonly groups: readonly MapGroup[];
  /**
   * Sets of devices. Each set contains the first and last index of each index range: `[0, 3, 7, 7]` contains the
   * devices 0 to 3 and 7.
   */
  readonly deviceSets: readonly (readonly number[])[];
  /** Sentences about rules and causes. Edges refer to a sentence by its index. */
  readonly texts: readonly MapText[];
  /** The evaluated login names. An edge that lists all of these names applies to any login name. */
  readonly logins: readonly string[];
  /** The evaluated addresses. An edge that lists all of these addresses applies to any address. */
  readonly addresses: readonly string[];
  readonly edges: readonly MapEdge[];
  /** The times for which the map shows the access, as text: the time of the map, and each later expiry time. */
  readonly times: readonly string[];
  /** Additional remarks for the reader, as sentences. */
  readonly notes: readonly string[];
}
