import type { ContextMemory } from '#shared/domain/context-block.ts'
import type { Memory } from '#shared/domain/memory.ts'

/** How a memory was told: the part of its text in characters, and whether it is marked as later. */
export type RecalledLine = { id: string; from?: number; to?: number; later?: boolean }

/** Memories with the parts of them that a block told. */
export function asTold(
  memories: readonly Memory[],
  lines: readonly RecalledLine[],
): ContextMemory[] {
  const toldLines = new Map(lines.map(line => [line.id, line]))
  return memories.map(memory => {
    const { from, to, later } = toldLines.get(memory.id) ?? {}
    const passage = to === undefined ? undefined : { from: from ?? 0, to }
    return { ...memory, passage, isLater: later }
  })
}
