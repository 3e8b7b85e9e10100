import type { Router } from '@koa/router'
import type { TriedFact as PresentedFact } from '#api/contract/generated/types.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { toInstructionsChange } from '#api/routes/orgs/extraction.ts'
import { presentUsageSums } from '#api/present/org.ts'
import { presentNamedMemory } from '#api/present/shared-memory.ts'
import { tryText, type TriedFact } from '#shared/org/pipeline/try-text.ts'

/** What the passes would make of a text. */
export function trial(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/trial',
    auth: loadedOrg,
    async handle({ admin, org, body }, ctx) {
      const { text, user_id: user, tag, instructions } = body
      const { calls, ...tried } = await tryText(backend, org, admin.email, {
        text,
        user,
        tag,
        instructions: instructions && toInstructionsChange(instructions),
      })
      ctx.body = {
        org_id: org.id,
        team_member_id: tried.teamMemberId,
        read_as: tried.readAs,
        not_asked: tried.notAsked,
        rule: tried.rule,
        facts: tried.facts.map(presentFact),
        usage: presentUsageSums(
          backend.prices,
          calls.map(call => ({ ...call, calls: 1 })),
        ),
      }
    },
  })
}

const presentFact = ({ leftOutBy, memories, ...fact }: TriedFact): PresentedFact => ({
  ...fact,
  left_out_by: leftOutBy,
  memories: memories.map(({ memory, newText }) => ({
    ...presentNamedMemory(memory),
    new_text: newText,
  })),
})
