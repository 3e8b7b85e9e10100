import type { EmbeddedMemory, VaultScope } from '#shared/domain/memory.ts'
import { audienceKey, type Audience } from '#shared/domain/visibility.ts'
import type { Image } from '#shared/search/index/vault-index.ts'

/** One space of vectors in a vault, or in a session of it (`null`: the core vault). */
export type SpaceRef = {
  scope: VaultScope
  session: string | null
  space: string
  dimension: number
  /**
   * Of a shared vault: who looks. Those who may see the same share an image, which holds what they may
   * see and nothing else, so that what is hidden from them neither counts nor costs anything.
   */
  audience?: Audience
}

/** Where images come from. */
export type ImageSource = {
  /**
   * Hands over every memory of the space in batches, best in order of time. What
   * is read is at least as new as the revision of the scope.
   */
  load(ref: SpaceRef, onBatch: (rows: EmbeddedMemory[]) => void): Promise<void>
  /**
   * What changed after revision `since`: ids to remove, and then rows to put; or
   * null when only reading everything anew can tell.
   */
  changes(ref: SpaceRef, since: number): Promise<{ put: EmbeddedMemory[]; remove: string[] } | null>
  /** Rough size in bytes, before anything is read. */
  measure(ref: SpaceRef): Promise<number>
}

/** The images this process holds within a budget of bytes; the least recently asked for go. */
export type Images = {
  /**
   * The image of a space, at least as new as the revision of the scope, and never
   * of an earlier epoch than the image held: as it is, brought up to date with what
   * changed, or loaded. Callers that ask at the same time share one load.
   * `too-large` when there is no room for it: search the database instead.
   *
   * A refresh changes an image that others may hold, but in one step without an
   * `await`: rank without awaiting between two looks at an image. Rejects with
   * whatever the source rejects with; the next caller tries again.
   */
  get(ref: SpaceRef): Promise<Image | 'too-large'>
  /** Lets go of everything about a vault, loads in progress included. */
  forget(vault: string): void
  /** Bytes of the images held, and of those being loaded as measured. */
  readonly bytes: number
  readonly budget: number
  /** Number of images. */
  readonly held: number
  stats(): ImageStats
}

type ImageStats = { hits: number; loads: number; refreshes: number; evictions: number }

export type ImagesOptions = {
  budgetBytes: number
  createImage: (options: { dimension: number }) => Image
  now?: () => number
}

type Version = { epoch: number; revision: number }

/** An image, or the verdict that there is no room for it. */
type Held = Version & { image: Image | 'too-large'; bytes: number; since: number }

/** A load or refresh in progress, and the version it leads to. */
type Work = Version & { outcome: Promise<Image | 'too-large' | 'superseded'> }

/** Vaults seldom shrink, and measuring a large one is slow: until then its verdict stands. */
const verdictMs = 600_000
/** A verdict counts as this much, so that verdicts are thrown out like images. */
const verdictBytes = 1_000

const tooMuch = new Error('An image grew past the budget while it was loaded')

export function createImages(source: ImageSource, options: ImagesOptions): Images {
  const { budgetBytes, createImage, now = Date.now } = options
  /** Least recently asked first. */
  const held = new Map<string, Held>()
  const working = new Map<string, Work>()
  const stats: ImageStats = { hits: 0, loads: 0, refreshes: 0, evictions: 0 }
  let heldBytes = 0
  let loadingBytes = 0

  /** What is held, if it will do; it is the most recently asked from now on. */
  function hit(key: string, ref: SpaceRef): Image | 'too-large' | undefined {
    const entry = held.get(key)
    if (!entry || !(isVerdict(entry, ref) || covers(entry, ref.scope))) return undefined
    held.delete(key)
    held.set(key, entry)
    stats.hits++
    return entry.image
  }

  function isVerdict({ image, epoch, since }: Held, { scope }: SpaceRef): boolean {
    return image === 'too-large' && epoch >= scope.epoch && now() - since < verdictMs
  }

  function start(key: string, ref: SpaceRef): Work {
    const { epoch, revision } = ref.scope
    const work: Work = { epoch, revision, outcome: Promise.resolve('superseded') }
    // Begins when `working` knows it: that is how it sees whether it is still wanted.
    work.outcome = Promise.resolve()
      .then(() => bringUp(key, ref, () => working.get(key) === work))
      .finally(() => {
        if (working.get(key) === work) working.delete(key)
      })
    working.set(key, work)
    return work
  }

  async function bringUp(key: string, ref: SpaceRef, wanted: () => boolean) {
    const entry = held.get(key)
    if (entry && entry.image !== 'too-large' && entry.epoch === ref.scope.epoch) {
      const changes = await source.changes(ref, entry.revision)
      if (!wanted()) return 'superseded'
      if (changes) {
        drop(key)
        entry.image.remove(changes.remove)
        entry.image.put(changes.put)
        stats.refreshes++
        return hold(key, ref, entry.image)
      }
    }
    drop(key)
    const image = await load(ref)
    if (!wanted()) return 'superseded'
    return image === 'no-room' ? 'too-large' : hold(key, ref, image)
  }

  async function load(ref: SpaceRef): Promise<Image | 'too-large' | 'no-room'> {
    const size = await source.measure(ref)
    if (size > budgetBytes) return 'too-large'
    // Other loads take the room for now: no verdict on this vault.
    if (loadingBytes + size > budgetBytes) return 'no-room'

    loadingBytes += size
    makeRoom()
    try {
      const image = createImage({ dimension: ref.dimension })
      await source.load(ref, rows => {
        image.put(rows)
        if (image.bytes > budgetBytes) throw tooMuch
      })
      image.trim()
      stats.loads++
      return image
    } catch (error) {
      if (error !== tooMuch) throw error
      return 'too-large'
    } finally {
      loadingBytes -= size
    }
  }

  function hold(key: string, { scope }: SpaceRef, loaded: Image | 'too-large') {
    const fits = loaded !== 'too-large' && loaded.bytes <= budgetBytes
    const image = fits ? loaded : 'too-large'
    const bytes = fits ? loaded.bytes : verdictBytes
    const { epoch, revision } = scope
    held.set(key, { image, bytes, epoch, revision, since: now() })
    heldBytes += bytes
    makeRoom()
    return image
  }

  function drop(key: string): boolean {
    heldBytes -= held.get(key)?.bytes ?? 0
    return held.delete(key)
  }

  /** What is being worked on stays: somebody has just asked for it. */
  function makeRoom() {
    for (const key of held.keys()) {
      if (heldBytes + loadingBytes <= budgetBytes) return
      if (!working.has(key) && drop(key)) stats.evictions++
    }
  }

  return {
    async get(ref) {
      const key = keyOf(ref)
      for (;;) {
        const image = hit(key, ref)
        if (image) return image

        const underway = working.get(key)
        if (underway && !covers(underway, ref.scope) && underway.epoch === ref.scope.epoch) {
          // Too early for us, but it goes on from where it ends. Its failure is not ours.
          await underway.outcome.catch(() => 'superseded')
          continue
        }
        const work = underway && covers(underway, ref.scope) ? underway : start(key, ref)
        const outcome = await work.outcome
        if (outcome !== 'superseded') return outcome
      }
    },

    forget(vault) {
      const own = (key: string) => key.startsWith(`${vault}\n`)
      for (const key of [...working.keys()].filter(own)) working.delete(key)
      for (const key of [...held.keys()].filter(own)) drop(key)
    },

    get bytes() {
      return heldBytes + loadingBytes
    },
    budget: budgetBytes,
    get held() {
      return [...held.values()].filter(({ image }) => image !== 'too-large').length
    },
    stats: () => ({ ...stats }),
  }
}

function keyOf({ scope, session, space, audience }: SpaceRef): string {
  const part = session === null ? 'core' : `session ${session}`
  const seen = audience && !audience.wildcard ? [audienceKey(audience)] : []
  return [scope.vault, space, ...seen, part].join('\n')
}

function covers(have: Version, wanted: Version): boolean {
  return (
    have.epoch > wanted.epoch || (have.epoch === wanted.epoch && have.revision >= wanted.revision)
  )
}
