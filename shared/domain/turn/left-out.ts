import type { HarnessReason } from '#shared/domain/turn/harness-elements.ts'

/** Why a text of a conversation is not stored. */
export type LeftOutReason =
  | HarnessReason
  /** A message, or the answer to it, of a call that a program makes for itself. */
  | 'aside'
  /** Text beside the calls of tools, before the final answer of a turn. */
  | 'step'
  /** The answer to a message that is not to be kept. */
  | 'private'

/** How many pieces were left out for each reason. */
export type LeftOutCounts = { [Reason in LeftOutReason]?: number }

export function countReasons(reasons: readonly LeftOutReason[]): LeftOutCounts {
  const counts: LeftOutCounts = {}
  for (const reason of reasons) counts[reason] = (counts[reason] ?? 0) + 1
  return counts
}
