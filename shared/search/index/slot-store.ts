import type { Memory, Tier } from '#shared/domain/memory.ts'
import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'
import { createUuidTable } from '#shared/search/index/uuid-table.ts'
import { createMemoryColumns, type MemoryColumns } from '#shared/search/index/memory-columns.ts'
import { createWordIndex, type WordIndex } from '#shared/search/words/word-index.ts'

/**
 * Where a block keeps its memories, vectors apart: in slots, in the order they
 * came. Rows change their numbers, slots do not, so a late memory or a removal
 * never rewrites texts or word lists.
 */
export type SlotStore = {
  /** Slots in use, dead ones included. */
  readonly count: number
  readonly bytes: number
  readonly wordIndex: WordIndex
  /** What the slots say. */
  readonly records: Omit<MemoryColumns, 'add' | 'pick' | 'trim' | 'bytes'>
  /** The slot of an id, or -1. */
  find(id: string): number
  id(slot: number): string
  /** Puts a memory into a new slot, at a row. */
  add(memory: Memory, row: number): number
  /** A slot is dead from now on: its id is unknown, its words are found no more. */
  markDead(slot: number): void
  row(slot: number): number
  setRow(slot: number, row: number): void
  readMemory(slot: number): Memory
  /** Gives dead slots back when they have become many; true when slots have new numbers. */
  compact(): boolean
  /** Gives back the room kept for growing. */
  trim(): void
}

/** The row of a dead slot. */
const deadRow = 0xffffffff

/** Dead slots stay until they are this share of all, and this many. */
const compactDeadShare = 1 / 5
const compactDeadMin = 256

export function createSlotStore(tier: Tier, termsOf: (text: string) => string[]): SlotStore {
  let ids = createUuidTable()
  let records = createMemoryColumns()
  let rows = new Uint32Array(0)
  let deadCount = 0
  const wordIndex = createWordIndex({ termsOf, rowBySlot: () => rows })

  return {
    get count() {
      return records.count
    },
    get bytes() {
      return ids.bytes + records.bytes + wordIndex.bytes + rows.byteLength
    },
    get records() {
      return records
    },
    wordIndex,
    find: id => ids.find(id),
    id: slot => ids.id(slot),

    add(memory, row) {
      const slot = ids.add(memory.id)
      records.add(memory)
      wordIndex.add(slot, memory.text)
      rows = ensureCapacity(rows, slot + 1)
      rows[slot] = row
      return slot
    },

    markDead(slot) {
      ids.drop(slot)
      rows[slot] = deadRow
      wordIndex.remove(slot)
      deadCount++
    },

    row: slot => rows[slot]!,
    setRow(slot, row) {
      rows[slot] = row
    },

    readMemory(slot) {
      const importance = records.importance(slot)
      const speaker = records.speaker(slot)
      const expiresAt = records.expiresAt(slot)
      return {
        id: ids.id(slot),
        tier,
        role: records.role(slot),
        text: records.text(slot),
        at: records.timeAt(slot),
        tokens: records.tokens(slot),
        ...(importance !== undefined && { importance }),
        ...(speaker !== undefined && { speaker }),
        ...(expiresAt !== undefined && { expiresAt }),
        ...records.tagsAndAuthor(slot),
      }
    },

    compact() {
      if (deadCount < compactDeadMin || deadCount < records.count * compactDeadShare) return false
      const slots = Uint32Array.from({ length: records.count }, (_, slot) => slot)
      const liveSlots = slots.filter(slot => rows[slot] !== deadRow)
      ids = ids.pick(liveSlots)
      records = records.pick(liveSlots)
      wordIndex.pick(liveSlots)
      rows = liveSlots.map(slot => rows[slot]!)
      deadCount = 0
      return true
    },

    trim() {
      ids.trim()
      records.trim()
      wordIndex.trim()
      rows = trimToLength(rows, records.count)
    },
  }
}
