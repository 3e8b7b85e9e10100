import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { useAsked, useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import type { OfOrg } from '#api/console/app/org/own.ts'
import { checkField, onSubmit } from '#api/console/app/parts/fields.ts'
import { redactionFields } from '#api/console/app/parts/redaction-fields.ts'
import { faultNote, shown } from '#api/console/app/parts/states.ts'
import { say } from '#api/console/app/said.ts'

type Kept = AnswerOf<'GET /v1/orgs/:orgId/policy'>

/** What an organization keeps out of its members' memory and its own. */
export function OrgPolicy({ org }: OfOrg): View {
  const params = { orgId: org }
  const asked = useAsked(signal => call('GET /v1/orgs/:orgId/policy', { params }, signal), [org])
  return html`<div>
    ${shown(asked, 'the policy', kept =>
      part(PolicyForm, { org, kept, key: JSON.stringify(kept), onSaved: asked.again }),
    )}
  </div>`
}

function PolicyForm({ org, kept, onSaved }: OfOrg & { kept: Kept; onSaved: () => void }): View {
  const [own, setOwn] = useState(kept.decided_by === 'organization')
  const [redaction, setRedaction] = useState(kept.redaction)
  const doing = useDoing()
  const save = async (): Promise<void> => {
    const { mode, kinds } = redaction
    const decided = { mode, ...(mode !== 'off' && { kinds }) }
    const body = { redaction: own ? decided : null }
    await call('PUT /v1/orgs/:orgId/policy', { params: { orgId: org }, body })
    say('The policy is saved.')
    onSaved()
  }
  return html`<form class="panel stack" onSubmit=${onSubmit(() => doing.run(save))}>
    ${checkField({
      label: 'Decide apart from the account',
      value: own,
      onValue: setOwn,
      hint: 'For what members store and for what they share.',
    })}
    ${own && redactionFields(redaction, setRedaction)} ${faultNote(doing.fault)}
    <div class="actions">
      <button class="button button-main" disabled=${doing.busy}>
        ${doing.busy ? 'Saving …' : 'Save the rules'}
      </button>
    </div>
  </form>`
}
