import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { requestPlans } from '#scripts/lab/prove/requests/requests.ts'
import { Tenant } from '#scripts/lab/prove/tenants/tenant.ts'

t.test(
  'every operation of the contract has a request that tenants, fuzz and proofs send',
  async t => {
    t.same(Object.keys(requestPlans).toSorted(), Object.keys(contractDocument.endpoints).toSorted())
  },
)

t.test('a word of somebody else is foreign, unless it was asked with or may be read', async t => {
  const [tenant, other, colleague] = [0, 1, 2].map(
    n => new Tenant('user', `mk_${n}`, 'account', String(n)),
  )
  tenant!.mayRead.add(colleague!.canary)
  const answer = JSON.stringify([tenant!.canary, other!.canary, colleague!.canary])
  t.same(tenant!.foreignWords(answer, ''), [other!.canary])
  t.same(tenant!.foreignWords(answer, `?search=${other!.canary}`), [])
  t.same(other!.foreignWords(answer, ''), [tenant!.canary, colleague!.canary])
})

t.test('a question that the account sent before is its own, in a trace of it', async t => {
  const asking = new Tenant('user', 'mk_1', 'asking', 'asking')
  const owner = new Tenant('owner', 'mk_2', 'asking', 'its owner')
  const other = new Tenant('user', 'mk_3', 'other', 'other')
  const question = `What does ${other.canary} know of the harbour?`
  const trace = JSON.stringify({ question })
  t.same(owner.foreignWords(trace, ''), [other.canary])
  asking.addQuestions(JSON.stringify({ body: { query: question } }))
  t.same(owner.foreignWords(trace, ''), [])
  t.same(owner.foreignWords(`${trace} ${other.canary} jots down`, ''), [other.canary])
})
