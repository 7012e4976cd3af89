import { newPattern, type Pattern, type PatternSource } from "@gatehouse-access/sdk/policy";

/**
 * Maximum memory of the cached patterns of one namespace, in bytes. The most expensive patterns that the contract allows
 * in the firewall rules of a namespace fit.
 */
const NAMESPACE_MAX = 48 * 1024 * 1024;
/** Maximum memory of all cached patterns, in bytes. Most patterns use much less memory than they may use. */
const TOTAL_MAX = 2 * NAMESPACE_MAX;
/** Memory of a text that is not a pattern, in bytes. */
const INVALID_BYTES = 1024;

interface NamespaceCache {
  readonly patterns: Map<string, Pattern | undefined>;
  bytes: number;
}

/**
 * Caches the compiled patterns of each namespace. The memory for each namespace is limited, so that no namespace can
 * replace the patterns of all others. If the memory for all namespaces is used, the cache removes the patterns of the
 * namespace that was used least recently.
 */
export class NamespacePatterns {
  readonly #namespaces = new Map<string, NamespaceCache>();
  #bytes = 0;
  readonly #namespaceMax: number;
  readonly #totalMax: number;

  /**
   * @param namespaceMax maximum memory of the patterns of one namespace, in bytes
   * @param totalMax maximum memory of all patterns, in bytes
   */
  constructor(namespaceMax = NAMESPACE_MAX, totalMax = TOTAL_MAX) {
    this.#namespaceMax = namespaceMax;
    this.#totalMax = totalMax;
  }

  /** Estimate of the memory that the cached patterns use at most, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the source of the patterns of a namespace, for one decision. */
  of(tenantId: string): PatternSource {
    const namespace = this.#namespaceOf(tenantId);
    // The namespace that was used most recently is the last one.
    this.#namespaces.delete(tenantId);
    this.#namespaces.set(tenantId, namespace);
    return (text) => this.#patternOf(this.#namespaceOf(tenantId), text);
  }

  #namespaceOf(tenantId: string): NamespaceCache {
    const existing = this.#namespaces.get(tenantId);
    if (existing !== undefined) return existing;
    const created: NamespaceCache = { patterns: new Map(), bytes: 0 };
    this.#namespaces.set(tenantId, created);
    return created;
  }

  #patternOf(namespace: NamespaceCache, text: string): Pattern | undefined {
    const { patterns } = namespace;
    if (patterns.has(text)) return patterns.get(text);
    const pattern = newPattern(text);
    const bytes = pattern?.bytes ?? INVALID_BYTES;
    // A decision tests the patterns of a namespace in the same order each time. If a new pattern replaced the oldest one,
    // a cache that is too small would never contain the next pattern. A full cache starts again instead. This also removes
    // patterns that the namespace no longer uses.
    if (namespace.bytes + bytes > this.#namespaceMax) this.#clear(namespace);
    patterns.set(text, pattern);
    namespace.bytes += bytes;
    this.#bytes += bytes;
    this.#limit();
    return pattern;
  }

  #clear(namespace: NamespaceCache): void {
    this.#bytes -= namespace.bytes;
    namespace.bytes = 0;
    namespace.patterns.clear();
  }

  #limit(): void {
    for (const [tenantId, namespace] of this.#namespaces) {
      if (this.#bytes <= this.#totalMax) return;
      this.#clear(namespace);
      this.#namespaces.delete(tenantId);
    }
  }
}
