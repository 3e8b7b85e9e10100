import { compileRules } from '#shared/search/profile/rules/rule.ts'

const kin =
  '(?:sœur|soeur|frère|mère|maman|père|papa|femme|mari|compagne|compagnon|copine|copain|fiancée?|fils|fille|bébé|cousine?|tante|oncle|nièce|neveu|grand-mère|grand-père|chef|cheffe|patronne?|collègue|colocataire|voisine?|propriétaire|médecin|amie?|meilleure amie|meilleur ami|chien|chienne|chat|chatte|lapin|cheval)'
const my = '(?:mon|ma|notre)'
const lasting = '(?!(?:ça|cela|ceci|ce|cette|bien|que|quand|te|vous|tu)(?![a-zß-ɏ]))'

export const french = compileRules(kin, [
  {
    kind: 'name',
    cues: 'appeler',
    pattern: "m'appeler {x}",
    subject: 'form of address',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'déménage déménageons',
    pattern: '(?:je déménage|nous déménageons|on déménage) (?:à|en|au|dans) {x}',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'habite vit',
    pattern: 'on (?:habite|vit) (?:maintenant |actuellement )?(?:à|en|au|aux|dans|près de) {x}',
    subject: 'home',
  },
  {
    kind: 'role',
    cues: 'bosse travaille',
    pattern: 'je (?:bosse|travaille) (?:[^,.;]{1,25}? )?(?:comme|en tant que) {x}',
    subject: 'occupation',
  },
  { kind: 'role', cues: 'bosse', pattern: 'je bosse (?:chez|pour|à la) {x}', subject: 'employer' },
  {
    kind: 'preference',
    cues: 'fan',
    pattern: "je (?:suis|ne suis pas) (?:un |une )?(?:grande? )?(?:fan|passionnée?) (?:de |d'|du )",
  },
  {
    kind: 'possession',
    cues: 'camping van caravane ordinateur téléphone tablette',
    pattern:
      "(?:j'ai|nous avons|on a) (?:acheté )?(?:une?|deux|trois) (?:[a-zß-ɏ]{2,15} ){0,2}(?:camping-car|van|caravane|ordinateur|téléphone|tablette){end}",
  },
  {
    kind: 'possession',
    cues: 'acheté adopté',
    pattern: "(?:j'ai|nous avons|on a) (?:acheté|adopté) (?:une?|deux|trois) [a-zß-ɏ]",
  },
  { kind: 'name', cues: 'appelle', pattern: "je m'appelle {x}", subject: 'name', isName: true },
  {
    kind: 'name',
    cues: 'appelle appelez',
    pattern: 'appel(?:le|ez)[- ]moi {x}',
    subject: 'form of address',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'nom prénom',
    pattern: 'mon (?:nom|prénom|nom complet) est {x}',
    subject: 'name',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'mon ma notre',
    pattern: `${my} {kin} (?:s'appelle|est) {x}`,
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'mon ma notre',
    pattern: `${my} {kin},? {x}`,
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'ai avons',
    pattern:
      "(?:j'ai|nous avons) (?:une?|deux|trois|quatre) (?:enfants?|fils|filles?|frères?|sœurs?){end}",
  },
  {
    kind: 'place',
    cues: 'habite vis habitons vivons',
    pattern:
      "(?:j'habite|je vis|nous (?:habitons|vivons)) (?:maintenant |actuellement |désormais )?(?:à|a|en|au|aux|dans|près de) {x}",
    subject: 'home',
  },
  {
    kind: 'place',
    cues: 'viens suis',
    pattern: "je (?:viens|suis originaire) (?:de |d'){x}",
    isName: true,
  },
  {
    kind: 'place',
    cues: 'déménagé emménagé',
    pattern: "(?:j'ai|nous avons) (?:dé|em)ménagé (?:[^.;]{0,30}? )?(?:à|en|au|dans) {x}",
    subject: 'home',
  },
  { kind: 'place', cues: 'grandi', pattern: "j'ai grandi (?:à|en|au|dans) {x}" },
  {
    kind: 'role',
    cues: 'travaille',
    pattern: 'je travaille (?:maintenant |actuellement )?(?:comme|en tant que) {x}',
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'travaille',
    pattern: 'je travaille (?:maintenant |actuellement )?(?:chez|pour|à la) {x}',
    subject: 'employer',
  },
  {
    kind: 'role',
    cues: 'suis',
    pattern:
      'je suis (?:maintenant |une? )?(?<value>(?:infirmi|enseignant|professeur|prof|médecin|avocat|ingénieur|développeu|étudiant|architecte|journaliste|comptable|cuisini|boulang|designer|graphiste|traduct|musicien|retraité|chercheu|vétérinaire|dentiste|plombi|électricien|artiste|écrivain|photographe|pompier|caissi|vendeu|menuisi|agricult)[a-zß-ɏ]{0,6}){end}',
    subject: 'occupation',
  },
  { kind: 'role', cues: 'étudie', pattern: "j'étudie {x}", subject: 'studies' },
  {
    kind: 'date',
    cues: 'anniversaire',
    pattern:
      '(?<subject>mon anniversaire|notre anniversaire(?: de mariage)?) (?:est|tombe) (?:le )?{x}',
    subject: '{subject}',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'né née',
    pattern: 'je suis née? (?:le|en) {x}',
    subject: 'date of birth',
    isDate: true,
  },
  { kind: 'date', cues: 'ans', pattern: "j'ai (?<value>[0-9]{1,3}) ans", subject: 'age' },
  { kind: 'preference', cues: 'préfère', pattern: `je préfère ${lasting}[a-zß-ɏ]` },
  {
    kind: 'preference',
    cues: 'adore aime',
    pattern: `j'(?:adore|aime) (?:beaucoup )?${lasting}[a-zß-ɏ]`,
  },
  { kind: 'preference', cues: 'déteste', pattern: `je déteste ${lasting}[a-zß-ɏ]` },
  {
    kind: 'preference',
    cues: 'aime mange bois supporte',
    pattern: `je (?:n'aime|ne (?:mange|bois|supporte)) (?:pas|jamais) ${lasting}[a-zß-ɏ]`,
  },
  {
    kind: 'preference',
    cues: 'préféré préférée favori favorite',
    pattern: '(?:mon|ma) (?<subject>[a-zß-ɏ]{2,20} (?:préférée?|favori|favorite)) est {x}',
    subject: '{subject}',
  },
  {
    kind: 'preference',
    cues: 'allergique intolérant intolérante',
    pattern: 'je suis (?:très )?(?:allergique|intolérante?) ',
  },
  {
    kind: 'preference',
    cues: 'végétarien végétarienne végane végétalien',
    pattern: 'je suis (?:maintenant )?(?<value>végétarien|végane|végétalien)',
    subject: 'diet',
  },
  {
    kind: 'instruction',
    cues: 'désormais dorénavant partir avenir',
    pattern:
      "(?:désormais|dorénavant|à partir de maintenant|à partir d'aujourd'hui|à l'avenir){end}(?! (?:j|nous))",
  },
  {
    kind: 'instruction',
    cues: 'toujours jamais',
    pattern:
      "^(?:s'il te plaît,? |merci de |et )?(?!(?:je|j'|tu|il|elle|on|nous|vous|ils|elles|le|la|les|l'|ce|c'|mon|ma|mes)(?![a-zß-ɏ]))(?:ne |n')?[a-zß-ɏ]{2,15}(?:[- ](?:moi|nous|me))? (?:toujours|jamais){end}",
  },
  {
    kind: 'instruction',
    cues: 'arrête arrêtez',
    pattern: "^(?:s'il te plaît,? )?arrêtez? (?:de |d')",
  },
  {
    kind: 'possession',
    cues: 'ai avons',
    pattern:
      "(?:j'ai|nous avons) (?:une?|deux|trois) (?:[a-zß-ɏ]{2,15} ){0,2}(?:chiens?|chats?|voitures?|vélos?|moto|maison|appartement|jardin|guitare|piano|bateau|cheval|peugeot|renault|citroën){end}",
  },
  {
    kind: 'change',
    cues: 'plus',
    pattern: "(?:je|nous) (?:ne |n')(?:[a-zß-ɏ]{1,15} ){1,2}plus{end}",
  },
  { kind: 'change', cues: 'arrêté', pattern: "(?:j'ai|nous avons) arrêté (?:de |d')" },
  {
    kind: 'change',
    cues: 'passé passée passés déménagé changé',
    pattern:
      "(?:passée?s?|déménagé|changé) (?:[^.;]{0,30}? )?(?:de |d'|du )[^.;]{1,50}? (?:à|a|en|au|vers) [a-z0-9ß-ɏ]",
  },
  {
    kind: 'change',
    cues: 'plus',
    pattern: 'je ne travaille plus (?:chez|pour|à la) {x}',
    ends: { kind: 'role', subject: 'employer' },
  },
  {
    kind: 'change',
    cues: 'plus',
    pattern: "(?:je n'habite|je ne vis) plus (?:à|en|au) {x}",
    ends: { kind: 'place', subject: 'home' },
  },
])
