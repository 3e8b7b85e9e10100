import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'
import { KeyTable } from '#shared/search/columns/key-table.ts'

/** What is read of the records of slots. */
type Records = { textHash(slot: number): number; timeAt(slot: number): number }

/** A copy that takes the place of its removed home. `settle` takes the new slot of the copy. */
type Inheritance = { home: number; heir: number; settle(slot: number): void }

/** The text of a removed slot: beyond every text. */
const noText = 0xffffffff

const key = new Uint32Array(2)

/**
 * Groups the slots of a tier by their text. Texts are numbered in the order they were added. One slot of each text is its
 * home: its words and vector are those of all copies, so that 20,000 copies of a prompt cost a search as much as one.
 */
export class CopyGroups {
  /** Texts by hash. */
  #texts = new KeyTable(2)
  #homeOfText = new Uint32Array(0)
  #textBySlot = new Uint32Array(0)
  /** The slots of a text that has several: how many, and the newest. */
  #copies = new Map<number, { count: number; newest: number }>()
  #count = 0

  get bytes(): number {
    return this.#texts.bytes + this.#homeOfText.byteLength + this.#textBySlot.byteLength
  }

  /** Whether any text has copies. */
  get isEmpty(): boolean {
    return this.#copies.size === 0
  }

  /** Number of different texts. */
  get textCount(): number {
    return this.#texts.liveCount
  }

  /** Above the numbers of all texts, removed ones included. */
  get textsEnd(): number {
    return this.#texts.count
  }

  /** The number of the text of each slot; beyond all texts for a removed slot. */
  get textBySlot(): Uint32Array {
    return this.#textBySlot
  }

  home(slot: number): number {
    return this.homeOfText(this.#textBySlot[slot]!)
  }

  homeOfText(text: number): number {
    return this.#homeOfText[text]!
  }

  isCopy(slot: number): boolean {
    return this.home(slot) !== slot
  }

  /** The newest slot with the text of a slot; of equal times the last one stored. */
  newest(slot: number): number {
    const text = this.#textBySlot[slot]!
    return this.#copies.get(text)?.newest ?? this.homeOfText(text)
  }

  /** Number of slots with the text of a slot. */
  countOf(slot: number): number {
    return this.#copies.get(this.#textBySlot[slot]!)?.count ?? 1
  }

  /** Takes a new slot whose record is stored. @returns whether it is a copy */
  add(slot: number, records: Records): boolean {
    this.#textBySlot = ensureCapacity(this.#textBySlot, slot + 1)
    this.#count = slot + 1
    const text = this.#find(slot, records)
    if (text < 0) this.#addText(slot)
    else this.#addCopy(text, slot, records)
    return text >= 0
  }

  /**
   * Removes slots. Costs a pass over all slots where one of them has copies.
   *
   * @returns for each home that was removed and has living copies, the newest of them: it must be added again as a new slot
   */
  remove(
    slots: readonly number[],
    records: Records,
    isLive: (slot: number) => boolean,
  ): Inheritance[] {
    const members = new Map<number, number[]>()
    for (const slot of slots) {
      const text = this.#textBySlot[slot]!
      if (this.#copies.has(text)) members.set(text, [])
      else this.#texts.drop(text)
    }
    if (members.size > 0)
      for (let slot = 0; slot < this.#count; slot++)
        if (isLive(slot)) members.get(this.#textBySlot[slot]!)?.push(slot)
    const inheritances: Inheritance[] = []
    for (const [text, group] of members) {
      const home = this.homeOfText(text)
      this.#copies.delete(text)
      if (isLive(home)) {
        for (const slot of group) if (slot !== home) this.#addCopy(text, slot, records)
        continue
      }
      this.#texts.drop(text)
      const heir = group.reduce(
        (one, other) => (isNewer(records, other, one) ? other : one),
        group[0] ?? -1,
      )
      if (heir < 0) continue
      const settle = (slot: number): void => {
        for (const other of group)
          if (other !== heir) this.#addCopy(this.#textBySlot[slot]!, other, records)
        this.#textBySlot[heir] = noText
      }
      inheritances.push({ home, heir, settle })
    }
    for (const slot of slots) this.#textBySlot[slot] = noText
    return inheritances
  }

  /** The groups of these slots only, all alive, numbered from 0; `records` are already those of the new numbers. */
  pick(slots: Uint32Array, records: Records): CopyGroups {
    const groups = new CopyGroups()
    groups.#textBySlot = new Uint32Array(slots.length)
    groups.#count = slots.length
    const texts = new Map<number, number>()
    // Homes first: a home may come after its copies.
    for (const [number, slot] of slots.entries()) {
      if (this.isCopy(slot)) continue
      groups.#find(number, records)
      texts.set(this.#textBySlot[slot]!, groups.#addText(number))
    }
    for (const [number, slot] of slots.entries())
      if (this.isCopy(slot)) groups.#addCopy(texts.get(this.#textBySlot[slot]!)!, number, records)
    return groups
  }

  /** What `restore` takes. */
  save() {
    return {
      texts: this.#texts.save(),
      homeOfText: this.#homeOfText.subarray(0, this.#texts.count),
      textBySlot: this.#textBySlot.subarray(0, this.#count),
      copies: Array.from(this.#copies, ([text, { count, newest }]) => [text, count, newest]),
    }
  }

  restore(saved: ReturnType<CopyGroups['save']>): this {
    this.#texts.restore(saved.texts)
    this.#homeOfText = saved.homeOfText
    this.#textBySlot = saved.textBySlot
    this.#count = saved.textBySlot.length
    this.#copies = new Map(
      saved.copies.map(([text, count, newest]) => [text!, { count: count!, newest: newest! }]),
    )
    return this
  }

  /** Frees unused capacity. */
  trim() {
    this.#texts.trim()
    this.#homeOfText = trimToLength(this.#homeOfText, this.#texts.count)
    this.#textBySlot = trimToLength(this.#textBySlot, this.#count)
  }

  /** The text of a slot, or -1; its hash is then in `key`. */
  #find(slot: number, records: Records): number {
    const hash = records.textHash(slot)
    key[0] = hash >>> 0
    key[1] = Math.floor(hash / 2 ** 32)
    return this.#texts.find(key)
  }

  /** Adds the text whose hash is in `key`. */
  #addText(home: number): number {
    const text = this.#texts.add(key)
    this.#homeOfText = ensureCapacity(this.#homeOfText, text + 1)
    this.#homeOfText[text] = home
    this.#textBySlot[home] = text
    return text
  }

  #addCopy(text: number, slot: number, records: Records) {
    const { count, newest } = this.#copies.get(text) ?? { count: 1, newest: this.homeOfText(text) }
    this.#textBySlot[slot] = text
    this.#copies.set(text, {
      count: count + 1,
      newest: isNewer(records, slot, newest) ? slot : newest,
    })
  }
}

const isNewer = (records: Records, slot: number, other: number): boolean =>
  records.timeAt(slot) > records.timeAt(other) ||
  (records.timeAt(slot) === records.timeAt(other) && slot > other)
