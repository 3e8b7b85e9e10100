import {
  createHash,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  sign,
  verify,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto'
import type { MasterKey } from '#shared/core/config.ts'
import type { ErasedCounts } from '#shared/accounts/account-erasures.postgres.ts'

/** The content of a receipt. */
export type Receipt = {
  /** The erasure. */
  id: string
  /** The account's id: outside of this service it identifies no one. */
  account: string
  /** SHA-256 in hex of `<id>:<email>`. */
  email_proof: string
  requested_at: string
  finished_at: string
  /** How much was erased from both stores, by kind. */
  erased: ErasedCounts & { memories: number; records: number }
  /** The ids of empty vaults stay for 400 days: work that is late finds them closed. */
  remaining: { empty_vault_ids: number; purged_after_days: number }
}

/** A public key that verifies receipts: JSON Web Key, Ed25519. */
export type ReceiptKey = JsonWebKey & { kid: string }

/** How an Ed25519 seed is wrapped in PKCS #8. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The same master key always gives the same signer. */
function deriveSigner({ key }: MasterKey): {
  kid: string
  privateKey: KeyObject
  publicKey: ReceiptKey
} {
  const seed = Buffer.from(hkdfSync('sha256', key, '', 'memory-vault erasure receipts v1', 32))
  const privateKey = createPrivateKey({
    key: Buffer.concat([pkcs8, seed]),
    format: 'der',
    type: 'pkcs8',
  })
  const jwk = createPublicKey(privateKey).export({ format: 'jwk' })
  const kid = createHash('sha256').update(String(jwk.x)).digest('base64url').slice(0, 16)
  return { kid, privateKey, publicKey: { ...jwk, kid, alg: 'EdDSA', use: 'sig' } }
}

/** The public keys of all configured master keys; the first one signs. */
export const receiptKeys = (masterKeys: readonly MasterKey[]): ReceiptKey[] =>
  masterKeys.map(key => deriveSigner(key).publicKey)

/** The content of the receipt of one user. */
export type UserReceipt = {
  /** The erasure: its operation removes what was hidden at once. */
  id: string
  account: string
  /** SHA-256 in hex of `<id>:<the product's id of the user>`, in lower case. */
  user_proof: string
  erased_at: string
  erased: { memories: number; keys: number }
}

/** A receipt as a compact JSON Web Signature, which any library for those can check. */
export function signReceipt(
  masterKeys: readonly MasterKey[],
  receipt: Receipt | UserReceipt,
): string {
  const { kid, privateKey } = deriveSigner(masterKeys[0]!)
  const head = { alg: 'EdDSA', typ: 'erasure-receipt+jws', kid }
  const text = [head, receipt]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`
}

/** The content of a receipt; undefined when none of these keys has signed it. */
export function verifyReceipt(text: string, keys: readonly ReceiptKey[]): Receipt | undefined {
  const [head = '', body = '', signature = '', ...rest] = text.trim().split('.')
  if (rest.length > 0) return undefined
  try {
    const { kid, alg } = decodePart(head) as { kid?: string; alg?: string }
    const jwk = keys.find(key => key.kid === kid)
    if (!jwk || alg !== 'EdDSA') return undefined
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const signed = Buffer.from(`${head}.${body}`)
    const isGenuine = verify(null, signed, key, Buffer.from(signature, 'base64url'))
    return isGenuine ? (decodePart(body) as Receipt) : undefined
  } catch {
    return undefined
  }
}

const decodePart = (part: string): unknown =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as unknown

/** Proves to a reader who knows the email that the erasure was of its account. */
export const emailProof = (id: string, email: string): string =>
  createHash('sha256').update(`${id}:${email.toLowerCase()}`).digest('hex')
