import { useState } from 'preact/hooks'
import { call, filled } from '#api/console/app/api-call.ts'
import { currentCredential, maskKey, setCredential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { dialogButton, dialogForm, useSecret } from '#api/console/app/parts/dialogs.ts'
import { selectField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import { MemoryKeys } from '#api/console/app/vault/memory-keys.ts'

type NewKey = { key: string; rotated: boolean; external_id?: string }

/** Lists and creates Memory Keys. */
export function Keys(): View {
  const [showSecret, secretView] = useSecret()
  const [turn, setTurn] = useState(0)
  const { owner } = currentCredential()!
  const onMinted = (minted: NewKey): void =>
    showSecret({
      title: 'Your new key',
      explanation: explainMinted(minted),
      secret: minted.key,
      onClose() {
        setTurn(turn + 1)
        // Another credential remounts the page: only after the secret is read.
        if (minted.rotated) setCredential({ ...currentCredential()!, key: minted.key })
      },
    })
  return page({
    title: 'Keys',
    description: html`One key opens one vault. This tab uses${' '}
      <code>${maskKey(currentCredential()!)}</code>.`,
    actions: [
      dialogButton('Rotate this key', onClose =>
        renderComponent(RotateForm, { onClose, onMinted }),
      ),
      dialogButton('New key', onClose => renderComponent(MintForm, { onClose, onMinted }), {
        kind: 'main',
      }),
    ],
    children: html`${
      owner
        ? renderComponent(MemoryKeys, { key: turn })
        : html`<p class="panel">
            It opens this vault alone. All keys and what concerns the account are shown to the key
            that was made with it.
          </p>`
    }
    ${secretView}`,
  })
}

function explainMinted({ rotated, external_id }: NewKey): string {
  if (rotated)
    return 'It opens the vault you are in; the old key stops working. It is shown only now.'
  if (external_id === undefined)
    return 'It opens an empty vault of its own, in the same account. It is shown only now.'
  return `It opens the vault of user ${external_id}. POST /v1/keys with this id shows it again.`
}

type FormProps = { onClose: () => void; onMinted: (minted: NewKey) => void }

function MintForm({ onClose, onMinted }: FormProps): View {
  const { fields, of } = useFields({ name: '', until: '', user: '' })
  return dialogForm({
    title: 'New key',
    verb: 'Create',
    onClose,
    act: async () => {
      const { name, until, user } = fields
      const body = filled({
        name,
        expires_at: until && new Date(`${until}T23:59:59`).toISOString(),
        external_id: user.trim() && user,
      })
      onMinted({ ...(await call('POST /v1/keys', { body })), rotated: false })
    },
    fields: html`${textField({ label: 'Name', ...of('name'), maxlength: 200, placeholder: 'New Key' })}
    ${currentCredential()!.owner && textField({ ...words.fields.keyUser, ...of('user') })}
    ${textField({ label: 'Valid until', type: 'date', ...of('until'), hint: 'Empty: for good.' })}`,
  })
}

function RotateForm({ onClose, onMinted }: FormProps): View {
  const [grace, setGrace] = useState('0')
  return dialogForm({
    title: 'Rotate this key',
    verb: 'Rotate',
    onClose,
    act: async () => {
      const body = { grace_seconds: Number(grace) }
      onMinted({ ...(await call('POST /v1/keys/rotate', { body })), rotated: true })
    },
    fields: selectField({
      label: 'The old key works',
      value: grace,
      onValue: setGrace,
      choices: { '0': 'no longer', '3600': 'for another hour', '86400': 'for another day' },
      hint: 'The vault and everything in it stay. This tab goes on with the new key.',
    }),
  })
}
