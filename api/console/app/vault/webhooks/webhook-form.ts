import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { checkboxGroup, textField } from '#api/console/app/parts/fields.ts'
import { useAction } from '#api/console/app/use-query.ts'
import type { WebhookEvent } from '#api/contract/generated/types.ts'

export const eventLabels: Record<WebhookEvent, string> = {
  'operation.finished': 'Work is finished',
  'reflection.suggested': 'Reflection is due',
  'review.waiting': 'A shared memory waits for review',
  'key.revoked': 'A key has ended',
}

const allEvents = Object.entries(eventLabels) as [WebhookEvent, string][]

type Props = { onClose: () => void; onCreated: (secret: string) => void }

/** Subscribes an address to events. */
export function WebhookForm({ onClose, onCreated }: Props): View {
  const [url, setUrl] = useState('')
  const [description, setDescription] = useState('')
  const [events, setEvents] = useState<readonly WebhookEvent[]>(allEvents.map(([event]) => event))
  const actionState = useAction()
  return dialogForm({
    title: 'New webhook',
    verb: 'Create',
    actionState,
    onClose,
    act: async () => {
      const body = { url: url.trim(), events: [...events], ...(description && { description }) }
      onCreated((await call('POST /v1/account/webhooks', { body })).secret)
    },
    fields: html`<div class="stack">
      ${textField({
        label: 'Address',
        value: url,
        onValue: setUrl,
        required: true,
        maxlength: 2048,
        placeholder: 'https://example.com/memory-events',
        hint: 'https, without credentials in it, and reachable from the internet.',
      })}
      ${textField({ label: 'Description', value: description, onValue: setDescription, maxlength: 200 })}
      ${checkboxGroup({ label: 'Is told when', value: events, onValue: setEvents, choices: allEvents })}
    </div>`,
  })
}
