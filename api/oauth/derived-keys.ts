import { createPrivateKey, hkdfSync, type JsonWebKey } from 'node:crypto'
import type { MasterKey } from '#shared/core/config.ts'

const derive = ({ key }: MasterKey, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', `memory-vault oauth ${purpose} v1`, 32))

/** How an Ed25519 seed is wrapped in PKCS #8. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Sign cookies, in every process and after a restart: the first signs, all verify. Another purpose logs everybody out. */
export const cookieKeys = (masterKeys: readonly MasterKey[]): string[] =>
  masterKeys.map(key => derive(key, 'cookies').toString('base64url'))

/** The key set that the provider requires. Tokens are opaque and no ID token is issued: the set signs nothing. */
export const signingKeys = (masterKeys: readonly MasterKey[]): JsonWebKey[] =>
  masterKeys.map(master => {
    const der = Buffer.concat([pkcs8, derive(master, 'signature')])
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    return { ...key.export({ format: 'jwk' }), alg: 'Ed25519', use: 'sig' }
  })
