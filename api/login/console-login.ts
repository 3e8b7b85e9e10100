import { randomBytes } from 'node:crypto'
import { plainText } from '#api/edge/html.ts'
import type { LoginState } from '#api/login/identity-provider.ts'
import type { PresentedChoice } from '#api/oauth/pages.ts'
import { oauthRecordId } from '#api/oauth/store.ts'
import { issueAdminKey, revokeAdminKey } from '#shared/access/admin-keys.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { hashKey, maskKey, mintKey, parseKey } from '#shared/access/key.ts'
import {
  acceptMembership,
  findChoiceKey,
  findKeyOwner,
  findLoginChoices,
  loginKeyName,
  type LoginChoice,
} from '#shared/access/login-choices.postgres.ts'
import { revokeKey } from '#shared/access/memory-keys.postgres.ts'
import { storeKey } from '#shared/access/mint.ts'
import {
  deleteOAuthRecord,
  findOAuthRecord,
  upsertOAuthRecord,
} from '#shared/access/oauth-records.postgres.ts'
import { recordRevokedKeys } from '#shared/access/revoked-key.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { mintId } from '#shared/core/ids.ts'
import { mintSignInKey, readMemberKey } from '#shared/org/admin/member-keys.ts'
import { deleteReviewerLogin, insertReviewerLogin } from '#shared/org/base/reviewers.postgres.ts'

type LoginBackend = Pick<Backend, 'postgres' | 'seal' | 'config' | 'now'>

/** How long a credential of a login lives, unless its organization says otherwise; after it a person signs in again. */
const credentialHours = 12

/** From the first page of the provider to the choice. */
const loginSeconds = 600

type LoginRecords = {
  Login: LoginState | { email: string }
  LoginCredential: {
    email: string
    admin: string | null
    account: string | null
    reviews?: boolean
  }
  LoginLink: { key: string }
}

/** Keeps something under a secret, which is returned; the table has its HMAC alone. */
async function keep<Model extends keyof LoginRecords>(
  { postgres, seal, config }: LoginBackend,
  model: Model,
  { value, seconds }: { value: LoginRecords[Model]; seconds: number },
  secret = randomBytes(32).toString('base64url'),
): Promise<string> {
  const id = oauthRecordId(config, model, secret)
  const payload = seal.seal(JSON.stringify(value), `${model} ${id.toString('hex')}`)
  const record = { model, id, payload, seconds, application: null, grantId: null }
  await upsertOAuthRecord(postgres.query, record)
  return secret
}

/** What is kept under a secret; it is deleted unless it is only looked at. */
async function take<Model extends keyof LoginRecords>(
  { postgres, seal, config }: LoginBackend,
  model: Model,
  secret: string,
  { looking = false } = {},
): Promise<LoginRecords[Model] | undefined> {
  const id = oauthRecordId(config, model, secret)
  const record = await findOAuthRecord(postgres.query, { model, id })
  if (!record) return undefined
  const isTaken = looking || (await deleteOAuthRecord(postgres.query, { model, id }))
  if (!isTaken) return undefined
  return JSON.parse(
    seal.open(record.payload, `${model} ${id.toString('hex')}`),
  ) as LoginRecords[Model]
}

/** @returns the secret of the browser's cookie. */
export const keepState = (backend: LoginBackend, value: LoginState): Promise<string> =>
  keep(backend, 'Login', { value, seconds: loginSeconds })

/** The state of a sign-in, once. @throws Refusal `forbidden` for another browser. */
export async function takeState(backend: LoginBackend, secret: string): Promise<LoginState> {
  const value = await take(backend, 'Login', secret)
  if (value && 'state' in value) return value
  throw refusal('forbidden', 'signInEnded')
}

/** @returns the secret of the browser's cookie, another one than before the sign-in. */
export const keepPerson = (backend: LoginBackend, email: string): Promise<string> =>
  keep(backend, 'Login', { value: { email }, seconds: loginSeconds })

/** Keeps a key for a link that opens the console with it, once. @returns the link's secret. */
export const keepLink = (backend: LoginBackend, key: string, hours: number): Promise<string> =>
  keep(backend, 'LoginLink', { value: { key }, seconds: hours * 3_600 })

/** The key of a link. @throws Refusal `forbidden` the second time, and when its hours are over. */
export async function openLink(
  backend: LoginBackend,
  secret: string,
  { looking = false } = {},
): Promise<string> {
  const value = await take(backend, 'LoginLink', secret, { looking })
  if (value) return value.key
  throw refusal('forbidden', 'linkUsed')
}

/** What a link opens, for the question before: whose vault, and by which key. @throws Refusal as `openLink`. */
export async function describeLink(
  backend: LoginBackend,
  secret: string,
): Promise<{ account: string; name: string; key: string }> {
  const key = await openLink(backend, secret, { looking: true })
  const { keyPepper } = backend.config
  const bare = parseKey(key)?.key ?? key
  const hash = hashKey(keyPepper, bare)
  const owner = await findKeyOwner(backend.postgres.query, hash)
  if (!owner) throw new Refusal('forbidden', 'The key of this link has ended')
  return { account: owner.account, name: plainText(owner.name), key: maskKey(bare) }
}

const choiceId = ({ kind, key, person, vault }: LoginChoice): string =>
  key ?? person ?? vault ?? kind

async function choicesOf(
  { postgres, config }: LoginBackend,
  email: string,
): Promise<LoginChoice[]> {
  const found = await findLoginChoices(postgres.query, email)
  const isAdmin = found.some(({ kind }) => kind === 'admin')
  if (isAdmin || email !== operatorEmail(config)) return found
  const none = {
    account: null,
    key: null,
    person: null,
    org: null,
    name: null,
    vault: null,
    ownedBy: null,
  }
  return [{ kind: 'admin', ...none, isNew: false, hours: credentialHours }, ...found]
}

/** What the person of a browser may open. @throws Refusal `forbidden`. */
export async function readChoices(
  backend: LoginBackend,
  secret: string,
): Promise<{ email: string; choices: PresentedChoice[] }> {
  const value = await take(backend, 'Login', secret, { looking: true })
  if (!value || !('email' in value)) throw refusal('forbidden', 'signInEnded')
  const choices = await choicesOf(backend, value.email)
  return {
    email: value.email,
    choices: choices.map(choice => {
      const { kind, name, ownedBy, isNew } = choice
      return { id: choiceId(choice), kind, name: name && plainText(name), ownedBy, isNew }
    }),
  }
}

/** What the person of a browser may let an application into; undefined where no one has signed in. */
export async function readVaultChoices(
  backend: LoginBackend,
  secret: string,
): Promise<{ email: string; choices: PresentedChoice[] } | undefined> {
  if (secret === '') return undefined
  const found = await readChoices(backend, secret).catch(() => undefined)
  return found && { ...found, choices: found.choices.filter(({ kind }) => opensVault(kind)) }
}

const opensVault = (kind: LoginChoice['kind']): boolean => kind === 'owner' || kind === 'member'

/**
 * The key by which an application acts in what the person has chosen: a lasting one, since it ends with it. Where the
 * organization demands a sign-in it is one of this sign-in.
 *
 * @throws Refusal `forbidden` for another browser, and for what the email does not open any more.
 */
export async function findKeyOfChoice(
  backend: LoginBackend,
  { secret, choice: id }: { secret: string; choice: string },
): Promise<{ keyHash: Buffer; maskedKey: string }> {
  const value = await take(backend, 'Login', secret, { looking: true })
  if (!value || !('email' in value)) throw refusal('forbidden', 'signInEnded')
  const choices = await choicesOf(backend, value.email)
  const choice = choices.find(one => opensVault(one.kind) && choiceId(one) === id)
  const { query } = backend.postgres
  const makesKey = choice?.kind === 'member' && choice.key === null
  const made = makesKey ? (await makeMemberKey(backend, value.email, choice)).id : null
  const key = choice && (await findChoiceKey(query, made ? { ...choice, key: made } : choice))
  if (choice?.isNew) await acceptMembership(query, choice.person!)
  if (key) return key
  throw new Refusal('forbidden', 'This email does not open that', 'Sign in again, or use a key')
}

const makeMemberKey = (
  backend: LoginBackend,
  email: string,
  { account, org, person, hours }: LoginChoice,
): Promise<{ key: string; id: string }> => {
  const admin = { email, account: account!, keyHash: Buffer.alloc(32) }
  const request = { user: person!, hours, now: backend.now() }
  return mintSignInKey(backend, { admin, org: org! }, request)
}

/** Ends the sign-in of a browser. */
export const forgetPerson = async (backend: LoginBackend, secret: string): Promise<void> =>
  void (await take(backend, 'Login', secret))

/**
 * A credential for what the person has chosen, once a sign-in: an admin's, an owner's or a reviewer's is new and ends
 * after hours, and a member's where the organization demands a sign-in; else it is the member's key.
 *
 * @throws Refusal `forbidden` for another browser, and for what the email does not open any more.
 */
export async function openChoice(
  backend: LoginBackend,
  { secret, choice: id }: { secret: string; choice: string },
): Promise<string> {
  const value = await take(backend, 'Login', secret)
  if (!value || !('email' in value)) throw refusal('forbidden', 'signInEnded')
  const { email } = value
  const choice = (await choicesOf(backend, email)).find(choice => choiceId(choice) === id)
  if (!choice) throw new Refusal('forbidden', 'This email does not open that', 'Sign in again')
  const { account, org, hours } = choice
  const keepCredential = (
    key: string,
    made: Partial<LoginRecords['LoginCredential']>,
  ): Promise<string> => {
    const value = { email, admin: null, account, ...made }
    return keep(backend, 'LoginCredential', { value, seconds: hours! * 3_600 }, key)
  }
  if (choice.kind === 'member') {
    await acceptMembership(backend.postgres.query, choice.person!)
    const admin = { email, account: account!, keyHash: Buffer.alloc(32) }
    if (choice.key !== null)
      return (await readMemberKey(backend, { admin, org: org! }, choice.key)).key
    const { key } = await makeMemberKey(backend, email, choice)
    return hours === null ? key : keepCredential(key, {})
  }
  const expiresAt = new Date(backend.now() + hours! * 3_600_000)
  const { keyPepper } = backend.config
  if (choice.kind === 'reviewer') {
    const key = mintKey('admin')
    const login = { hash: hashKey(keyPepper, key), reviewer: choice.person!, expiresAt }
    await insertReviewerLogin(backend.postgres.query, login)
    return keepCredential(key, { reviews: true })
  }
  const key = mintKey(choice.kind === 'admin' ? 'admin' : 'vault')
  const adminKey = mintId()
  await backend.postgres.transaction(async tx => {
    if (choice.kind === 'admin') {
      const hash = hashKey(keyPepper, key)
      const made = { id: adminKey, hash, email, masked: maskKey(key), issuedBy: 'login', expiresAt }
      await issueAdminKey(tx, made, email)
    } else {
      await storeKey(tx, keyPepper, {
        key,
        vault: choice.vault!,
        account: choice.account!,
        kind: 'vault',
        name: loginKeyName,
        expiresAt,
        actor: email,
        action: 'key.minted',
      })
    }
  })
  return keepCredential(key, { admin: choice.kind === 'admin' ? adminKey : null })
}

/** Ends a credential that a login has made; any other stays. @returns whether it was one. */
export async function endLogin(backend: LoginBackend, key: string): Promise<boolean> {
  const made = await take(backend, 'LoginCredential', key)
  if (!made) return false
  const { email, admin, account, reviews } = made
  const hash = hashKey(backend.config.keyPepper, key)
  if (reviews) return deleteReviewerLogin(backend.postgres.query, hash)
  await backend.postgres.transaction(async tx => {
    if (admin !== null) await revokeAdminKey(tx, { email, id: admin }, email)
    else {
      const revoked = await revokeKey(tx.query, account!, hash)
      await recordRevokedKeys(tx, revoked, email)
    }
  })
  return true
}
