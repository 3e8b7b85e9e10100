import type { Memory, Tier } from '#shared/domain/memory.ts'
import { grown, trimmed } from '#shared/search/columns/column.ts'
import { createIds } from '#shared/search/index/ids.ts'
import { createRecords, type Records } from '#shared/search/index/records.ts'
import { createWordIndex, type WordIndex } from '#shared/search/words/word-index.ts'

/**
 * Where a block keeps its memories, vectors apart: in slots, in the order they
 * came. Rows change their numbers, slots do not, so a late memory or a removal
 * never rewrites texts or word lists.
 */
export type Shelf = {
  /** Slots in use, dead ones included. */
  readonly count: number
  readonly bytes: number
  readonly words: WordIndex
  /** What the slots say. */
  readonly records: Omit<Records, 'add' | 'pick' | 'trim' | 'bytes'>
  /** The slot of an id, or -1. */
  find(id: string): number
  id(slot: number): string
  /** Puts a memory into a new slot, at a row. */
  add(memory: Memory, row: number): number
  /** A slot is dead from now on: its id is unknown, its words are found no more. */
  drop(slot: number): void
  row(slot: number): number
  setRow(slot: number, row: number): void
  read(slot: number): Memory
  /** Gives dead slots back when they have become many; true when slots have new numbers. */
  tidy(): boolean
  /** Gives back the room kept for growing. */
  trim(): void
}

/** The row of a dead slot. */
const nowhere = 0xffffffff

/** Dead slots stay until they are this share of all, and this many. */
const deadShare = 1 / 5
const deadMin = 256

export function createShelf(tier: Tier, termsOf: (text: string) => string[]): Shelf {
  let ids = createIds()
  let records = createRecords()
  let rows = new Uint32Array(0)
  let dead = 0
  const words = createWordIndex({ termsOf, rowsOf: () => rows })

  return {
    get count() {
      return records.count
    },
    get bytes() {
      return ids.bytes + records.bytes + words.bytes + rows.byteLength
    },
    get records() {
      return records
    },
    words,
    find: id => ids.find(id),
    id: slot => ids.id(slot),

    add(memory, row) {
      const slot = ids.add(memory.id)
      records.add(memory)
      words.add(slot, memory.text)
      rows = grown(rows, slot + 1)
      rows[slot] = row
      return slot
    },

    drop(slot) {
      ids.drop(slot)
      rows[slot] = nowhere
      words.remove(slot)
      dead++
    },

    row: slot => rows[slot]!,
    setRow(slot, row) {
      rows[slot] = row
    },

    read(slot) {
      const importance = records.importance(slot)
      const speaker = records.speaker(slot)
      const expiresAt = records.expiresAt(slot)
      return {
        id: ids.id(slot),
        tier,
        role: records.role(slot),
        text: records.text(slot),
        at: records.at(slot),
        tokens: records.tokens(slot),
        ...(importance !== undefined && { importance }),
        ...(speaker !== undefined && { speaker }),
        ...(expiresAt !== undefined && { expiresAt }),
        ...records.label(slot),
      }
    },

    tidy() {
      if (dead < deadMin || dead < records.count * deadShare) return false
      const slots = Uint32Array.from({ length: records.count }, (_, slot) => slot)
      const alive = slots.filter(slot => rows[slot] !== nowhere)
      ids = ids.pick(alive)
      records = records.pick(alive)
      words.pick(alive)
      rows = alive.map(slot => rows[slot]!)
      dead = 0
      return true
    },

    trim() {
      ids.trim()
      records.trim()
      words.trim()
      rows = trimmed(rows, records.count)
    },
  }
}
