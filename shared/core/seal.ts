import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { MasterKey } from '#shared/core/config.ts'

/** Encrypts secrets that must be readable again: provider keys, members' raw keys. */
export class Seal {
  readonly #masterKeys: readonly MasterKey[]

  /** @param masterKeys the first one seals, every one opens */
  constructor(masterKeys: readonly MasterKey[]) {
    this.#masterKeys = masterKeys
  }

  /**
   * AES-256-GCM as `v1.keyId.iv.tagAndText`.
   *
   * @param place table and row: moved to another row, the sealed text does not open
   */
  seal(secret: string, place: string): string {
    const [first] = this.#masterKeys
    if (!first) throw new Error('no master key')
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', first.key, iv).setAAD(Buffer.from(place))
    const body = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
    const sealed = Buffer.concat([cipher.getAuthTag(), body])
    return ['v1', first.id, iv.toString('base64url'), sealed.toString('base64url')].join('.')
  }

  /** @throws Error when the text was changed, moved, or sealed by a key no longer configured. */
  open(sealed: string, place: string): string {
    const [version, id, iv, body] = sealed.split('.')
    const master = this.#masterKeys.find(candidate => candidate.id === id)
    if (version !== 'v1' || !iv || !body) throw new Error('not a sealed text')
    if (!master) throw new Error(`sealed by master key ${id}, which is not configured`)
    const bytes = Buffer.from(body, 'base64url')
    const decipher = createDecipheriv('aes-256-gcm', master.key, Buffer.from(iv, 'base64url'))
    decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(0, 16))
    return decipher.update(bytes.subarray(16), undefined, 'utf8') + decipher.final('utf8')
  }
}
