import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { useAsked, useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { redactionFields } from '#api/console/app/parts/redaction-fields.ts'
import { faultNote, shown } from '#api/console/app/parts/states.ts'
import { say } from '#api/console/app/said.ts'

type Kept = AnswerOf<'GET /v1/account/policy'>

/** What the account keeps out of memory, and for how long it keeps the rest. */
export function Policy(): View {
  const asked = useAsked(signal => call('GET /v1/account/policy', {}, signal), [])
  return page({
    title: 'Policy',
    words: 'What the account keeps out of memory, and for how long it keeps the rest.',
    children: shown(asked, 'the policy', kept =>
      part(PolicyForm, { kept, key: JSON.stringify(kept), onSaved: asked.again }),
    ),
  })
}

function PolicyForm({ kept, onSaved }: { kept: Kept; onSaved: () => void }): View {
  const [redaction, setRedaction] = useState(kept.redaction)
  const [days, setDays] = useState(String(kept.retention_days ?? ''))
  const doing = useDoing()
  const save = async (): Promise<void> => {
    const { mode, kinds } = redaction
    const body = {
      redaction: { mode, ...(mode !== 'off' && { kinds }) },
      retention_days: days.trim() === '' ? null : Number(days),
    }
    const { operation_id } = await call('PUT /v1/account/policy', { body })
    say(operation_id ? 'Saved: what is stored already follows.' : 'The policy is saved.')
    onSaved()
  }
  return html`<form class="panel stack" onSubmit=${onSubmit(() => doing.run(save))}>
    ${redactionFields(redaction, setRedaction)}
    ${textField({
      label: 'Days that memories are kept',
      type: 'number',
      min: 1,
      max: 36_500,
      step: 1,
      value: days,
      onValue: setDays,
      placeholder: 'For good',
      hint: 'Counted from the day something is stored, whatever time it tells of. Empty: for good.',
    })}
    ${faultNote(doing.fault)}
    <div class="actions">
      <button class="button button-main" disabled=${doing.busy}>
        ${doing.busy ? 'Saving …' : 'Save'}
      </button>
    </div>
  </form>`
}
