import type { RecordingSize } from "./recordingSizes.ts";

/** Quotas of recordings in bytes. Undefined for no limit. */
interface RecordingQuotas {
  readonly all: number | undefined;
  readonly namespace: number | undefined;
}

/** A namespace whose recordings have reached or exceeded their share. */
export interface FullNamespace {
  readonly tenantId: string;
  /** Number of bytes by which the recordings exceed the share. */
  readonly excess: number;
}

/**
 * Returns the namespaces whose recordings have reached their share of the quotas. The share of a namespace is the quota
 * per namespace. If all recordings together reach the total quota, the share is lower. The largest namespaces then have
 * the same share, and the other namespaces keep all of their recordings (max-min fairness). So a namespace with many
 * recordings never displaces the recordings of a namespace with few recordings.
 * @param sizes the sizes of all namespaces, the largest first
 */
export function fullNamespaces(sizes: readonly RecordingSize[], quotas: RecordingQuotas): FullNamespace[] {
  const { all = Number.POSITIVE_INFINITY, namespace = Number.POSITIVE_INFINITY } = quotas;
  const share = Math.min(
    namespace,
    equalShare(
      sizes.map(({ bytes }) => Math.min(bytes, namespace)),
      all,
    ),
  );
  return sizes
    .filter(({ bytes }) => bytes >= share)
    .map(({ tenantId, bytes }) => ({ tenantId, excess: Math.ceil(bytes - share) }));
}

/**
 * Returns the largest share with which the total size does not exceed `total`. Returns infinity if the total size is
 * already lower than `total`.
 * @param sizes the largest first
 */
function equalShare(sizes: readonly number[], total: number): number {
  let others = sizes.reduce((sum, size) => sum + size, 0);
  if (others < total) return Number.POSITIVE_INFINITY;
  for (const [index, size] of sizes.entries()) {
    others -= size;
    const share = (total - others) / (index + 1);
    if (share >= (sizes[index + 1] ?? 0)) return share;
  }
  return Number.POSITIVE_INFINITY;
}
