import { useState } from 'preact/hooks'
import { addressOf, go } from '#api/console/app/address.ts'
import { useAsked, useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { secretDialog } from '#api/console/app/parts/secret.ts'
import { emptyNote, shown } from '#api/console/app/parts/states.ts'
import type { Org } from '#api/console/app/org/own.ts'
import { shortDayOf } from '#api/console/app/words.ts'

type Made = { id: string; key: string }

/** The organizations of an admin, and the way to a new one. */
export function Orgs(): View {
  const [creating, setCreating] = useState(false)
  const [made, setMade] = useState<Made>()
  const asked = useAsked(signal => call('GET /v1/orgs', {}, signal), [])
  const create = html`<button
    type="button"
    class="button button-main"
    onClick=${() => setCreating(true)}
  >
    New organization
  </button>`
  return page({
    title: 'Organizations',
    words: 'A team shares a memory beside the private vaults of its members.',
    actions: create,
    children: html`<div>
      ${shown(asked, 'organizations', ({ orgs }) =>
        orgs.length === 0
          ? emptyNote(
              'No organization yet',
              'Create one to mint keys for members and share memories.',
            )
          : html`<ul class="plain cards">
              ${orgs.map(org => html`<li key=${org.org_id}>${orgCard(org)}</li>`)}
            </ul>`,
      )}
      ${creating && part(CreateForm, { onClose: () => setCreating(false), onMade: setMade })}
      ${
        made &&
        secretDialog({
          title: 'The key of the organization',
          words:
            'It reads shared memories without tags and stores nothing. Members get keys of their own. It is shown only now.',
          secret: made.key,
          onClose: () => go('orgs', made.id, 'members'),
        })
      }
    </div>`,
  })
}

const orgCard = ({ org_id, name, created_at, processor_provider }: Org): View =>
  html`<a class="panel card" href=${addressOf('orgs', org_id, 'review')}>
    <b>${name}</b>
    <span class="quiet">Since ${shortDayOf(created_at)}, processed by ${processor_provider}</span>
  </a>`

function CreateForm({
  onClose,
  onMade,
}: {
  onClose: () => void
  onMade: (made: Made) => void
}): View {
  const [name, setName] = useState('')
  const doing = useDoing()
  return dialogForm({
    title: 'New organization',
    verb: 'Create',
    doing,
    onClose,
    act: async () => {
      const { org_id, org_key } = await call('POST /v1/orgs', { body: { name } })
      onMade({ id: org_id, key: org_key })
    },
    fields: textField({
      label: 'Name',
      value: name,
      onValue: setName,
      required: true,
      maxlength: 200,
      hint: 'Models are chosen for it; Settings changes them.',
    }),
  })
}
