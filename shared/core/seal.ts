import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { MasterKey } from '#shared/core/config.ts'

/** Encrypts secrets that must be readable again: provider keys, members' raw keys. */
export type Seal = {
  /**
   * AES-256-GCM as `v1.keyId.iv.tagAndText`, bound to `place` (table and row), so that a sealed text
   * moved to another row does not open.
   */
  seal(secret: string, place: string): string
  /** @throws Error when the text was changed, moved, or sealed by a key no longer configured. */
  open(sealed: string, place: string): string
  /** Whether the text was sealed by a key that is not the first any more. */
  isStale(sealed: string): boolean
}

export function createSeal(masterKeys: readonly MasterKey[]): Seal {
  const [first] = masterKeys
  if (!first) throw new Error('no master key')

  return {
    seal(secret, context) {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', first.key, iv).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
      const sealed = Buffer.concat([cipher.getAuthTag(), body])
      return ['v1', first.id, iv.toString('base64url'), sealed.toString('base64url')].join('.')
    },

    open(sealed, context) {
      const [version, id, iv, body] = sealed.split('.')
      const master = masterKeys.find(candidate => candidate.id === id)
      if (version !== 'v1' || !iv || !body) throw new Error('not a sealed text')
      if (!master) throw new Error(`sealed by master key ${id}, which is not configured`)
      const bytes = Buffer.from(body, 'base64url')
      const nonce = Buffer.from(iv, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', master.key, nonce)
      decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(0, 16))
      return decipher.update(bytes.subarray(16), undefined, 'utf8') + decipher.final('utf8')
    },

    isStale: sealed => sealed.split('.')[1] !== first.id,
  }
}
