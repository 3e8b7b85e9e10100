import type { Endpoint } from '#api/contract/document.ts'
import type { RequestOptions } from '#scripts/lab/prove/cluster.ts'
import {
  createTenants,
  keptText,
  memoriesKept,
  serviceOf,
} from '#scripts/lab/prove/tenants/create-tenants.ts'
import {
  createLimit,
  Faults,
  pickOne,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'
import type { RequestInput, RequestPlan } from '#scripts/lab/prove/requests/request-plan.ts'
import { buildRequest, planOf, routes, sendersOf } from '#scripts/lab/prove/requests/requests.ts'
import { partOfKey, type Tenant } from '#scripts/lab/prove/tenants/tenant.ts'

const clients = 8
/** Share of requests sent by a tenant of another kind than may send them. */
const misplacedShare = 0.1
/** Share of ids that belong to another tenant. */
const foreignShare = 0.4
const settleMs = 120_000

/** Many tenants send every request there is; no answer holds a word of another one's, and all keep what they have. */
export async function proveTenants(context: SectionContext): Promise<SectionResult> {
  const { cluster, random } = context
  const faults = new Faults()
  const tenants = await createTenants(serviceOf(context), 'tenant')
  const reached = new Set<string>()
  const served = new Set<string>()
  let operations = 0
  let foreign = 0
  let broken = 0
  const isOver = createLimit(context, () => operations)
  await runLoops(clients, isOver, async () => {
    const endpoint = pickOne(routes, random)
    const sent = requestOf(endpoint, tenants, context)
    if (!sent) return
    const { tenant, key, path, options, plan } = sent
    const asked = `${path} ${JSON.stringify(options)}`
    tenant.addQuestions(asked)
    const answer = await cluster.send(pickOne(cluster.ports, random), key, path, options)
    operations++
    reached.add(endpoint.operation)
    // 503 asks to try again.
    if (answer.status === 0 || (answer.status >= 500 && answer.status !== 503)) {
      broken++
      faults.add(`${endpoint.method} ${path}: ${answer.status} ${answer.text.slice(0, 200)}`)
    }
    // An answer may repeat what its own request asked.
    const words = tenant.foreignWords(answer.text, asked)
    if (words.length > 0) {
      foreign++
      faults.add(
        `${endpoint.method} ${path} (${answer.status}) told ${tenant.kind} ${tenant.canary} of ${words[0]}: ${aroundWord(answer.text, words[0]!)}`,
      )
    }
    if (answer.status < 200 || answer.status > 299) return
    served.add(endpoint.operation)
    tenant.addNamed(plan, answer.text)
  })
  await cluster.settle(settleMs)
  const changed = await countChanged(context, tenants, faults)
  const [leaving] = tenants
  for (const operation of await eraseAccount(context, leaving!)) {
    reached.add(operation)
    served.add(operation)
  }
  await cluster.settle(settleMs)
  const staying = tenants.filter(({ account }) => account !== leaving!.account)
  const changedByErasure = await countChanged(context, staying, faults)
  return {
    figures: [
      { name: 'tenants', value: tenants.length },
      { name: 'routes reached', value: reached.size },
      { name: 'routes never answered with 2xx', value: reached.size - served.size },
      { name: 'operations', value: operations },
      { name: 'answers with a foreign word', value: foreign, most: 0 },
      { name: 'answers missing or 5xx other than 503', value: broken, most: 0 },
      {
        name: 'memories changed or deleted by another tenant',
        value: changed + changedByErasure,
        most: 0,
      },
    ],
    faults: faults.first,
  }
}

type TenantRequest = {
  tenant: Tenant
  key: string
  path: string
  options: RequestOptions
  plan: RequestPlan
}

/** @returns null where it is not sent: the tenant has enough of what it makes, or it is a rare one */
function requestOf(
  endpoint: Endpoint,
  tenants: readonly Tenant[],
  { random, provider }: SectionContext,
): TenantRequest | null {
  const plan = planOf(endpoint)
  const isMisplaced = random() < misplacedShare
  const sender = pickOne(sendersOf(endpoint), random)
  const tenant = pickOne(
    tenants.filter(({ kind }) => isMisplaced || kind === sender),
    random,
  )
  if ((plan.makes && tenant.isFull(plan.makes)) || (plan.isRare && random() < 0.9)) return null
  const other = pickOne(
    tenants.filter(({ account }) => account !== tenant.account),
    random,
  )
  const isForeign = (): boolean => isMisplaced || random() < foreignShare
  const input: RequestInput = {
    word: tenant.canary,
    foreignWord: other.canary,
    foreignSession: other.session,
    id: (kind, choice = 'any') =>
      isForeign() ? other.any(kind, random) : tenant[choice](kind, random),
    destination: () =>
      isForeign()
        ? partOfKey(other.any('destination', random), random)
        : tenant.any('destination', random),
    random,
    origin: provider.origin,
  }
  const { path, options } = buildRequest(endpoint, input)
  return {
    tenant,
    plan,
    key: plan.withOwnKey ? tenant.take('key', random) : tenant.key,
    path,
    // What is queued need not be waited for.
    options: { ...options, headers: { prefer: 'respond-async', ...options.headers } },
  }
}

const aroundWord = (text: string, word: string): string =>
  text.slice(Math.max(0, text.indexOf(word) - 120), text.indexOf(word) + 80)

/** Kept memories that are no longer as they were stored, of vaults and of organizations. */
async function countChanged(
  { cluster }: SectionContext,
  tenants: readonly Tenant[],
  faults: Faults,
): Promise<number> {
  let changed = 0
  for (const tenant of tenants) {
    if (tenant.kind === 'operator') continue
    const path =
      tenant.kind === 'admin'
        ? `/v1/orgs/${tenant.kept.get('orgId')![0]}/export`
        : '/v1/memory/export'
    const { status, text } = await cluster.send(cluster.ports[0]!, tenant.key, path)
    if (status !== 200) throw new Error(`${path} was answered with ${status} ${text}`)
    const left = Array.from({ length: memoriesKept }, (_, n) => keptText(tenant, n)).filter(kept =>
      text.includes(kept),
    ).length
    if (left === memoriesKept) continue
    changed += memoriesKept - left
    faults.add(
      `${left} of ${memoriesKept} memories of the ${tenant.kind} ${tenant.canary} are left`,
    )
  }
  return changed
}

/** An account goes, which no random request may do. @returns its operations that were answered with 2xx */
async function eraseAccount({ cluster }: SectionContext, owner: Tenant): Promise<string[]> {
  const port = cluster.ports[0]!
  const erased = await cluster.send(port, owner.key, '/v1/account/erase', {
    body: { email: `${owner.account}@example.com` },
  })
  if (erased.status !== 202) return []
  const { receipt_path: path } = JSON.parse(erased.text) as { receipt_path: string }
  const receipt = await cluster.send(port, owner.key, path)
  return receipt.status === 200 ? ['eraseAccount', 'readReceipt'] : ['eraseAccount']
}
