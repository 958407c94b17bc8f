//! Expands the list of families to one object for each, and to the dispatch of an event to the
//! family of its kind. Dispatch is one jump by a table of kinds instead of calls of function
//! pointers: there are millions of events.

/// See [`Converter`](super::Converter) for the meaning of the functions.
macro_rules! families {
    (calls: $calls:ty, always: { $($always:ident: $always_type:ty,)* }, on_demand: { $($name:ident: $type:ty,)* }) => {
        pub(crate) mod calls;
        $(pub(crate) mod $always;)*
        $(pub(crate) mod $name;)*

        /// Families that may be left out of a recording.
        pub const FAMILIES: &[Family] = &[$(<$type as Converter>::FAMILY,)*];

        /// All families.
        const ALL: &[Family] =
            &[<$calls as Converter>::FAMILY, $(<$always_type as Converter>::FAMILY,)* $(<$type as Converter>::FAMILY,)*];

        /// A family, as a number.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[allow(non_camel_case_types)]
        enum Of { calls, $($always,)* $($name,)* unknown }

        /// In the order of [`ALL`].
        const NUMBERS: &[Of] = &[Of::calls, $(Of::$always,)* $(Of::$name,)*];

        /// The family of each kind of event, which is one.
        const FAMILY_OF: [Of; 256] = {
            let (mut of, mut family) = ([Of::unknown; 256], 0);
            while family < ALL.len() {
                let mut index = 0;
                while index < ALL[family].kinds.len() {
                    let kind = ALL[family].kinds[index].0 as usize;
                    assert!(matches!(of[kind], Of::unknown), "two families have events of one kind");
                    of[kind] = NUMBERS[family];
                    index += 1;
                }
                family += 1;
            }
            of
        };

        /// All families except the system calls.
        #[derive(Default)]
        struct Others { $($always: $always_type,)* $($name: $type,)* }

        impl Others {
            #[inline]
            fn call(
                &mut self, call: &Call<'_>, shape: Shape, row: &mut CallRow, conversion: &mut Conversion<'_>,
            ) -> Result<(), BpfError> {
                $(self.$always.call(call, shape, row, conversion)?;)*
                $(self.$name.call(call, shape, row, conversion)?;)*
                Ok(())
            }
        }

        /// An object of each family.
        #[derive(Default)]
        pub(crate) struct Families { calls: $calls, others: Others }

        impl Families {
            /// Whether an event is whole; `None`: no family knows its kind.
            #[inline]
            pub(crate) fn is_whole(event: &Raw<'_>) -> Option<bool> {
                match FAMILY_OF[usize::from(event.kind)] {
                    Of::calls => Some(<$calls as Converter>::is_whole(event)),
                    $(Of::$always => Some(<$always_type as Converter>::is_whole(event)),)*
                    $(Of::$name => Some(<$type as Converter>::is_whole(event)),)*
                    Of::unknown => None,
                }
            }

            /// Time of an event, if it has one.
            #[inline]
            pub(crate) fn at_ns(event: &Raw<'_>) -> Option<u64> {
                match FAMILY_OF[usize::from(event.kind)] {
                    Of::calls => <$calls as Converter>::at_ns(event),
                    $(Of::$always => <$always_type as Converter>::at_ns(event),)*
                    $(Of::$name => <$type as Converter>::at_ns(event),)*
                    Of::unknown => None,
                }
            }

            pub(crate) fn begins(&mut self, start: &Start, places: &mut Places) {
                self.calls.begins(start, places);
                $(self.others.$always.begins(start, places);)*
                $(self.others.$name.begins(start, places);)*
            }

            #[inline]
            pub(crate) fn survey(&mut self, event: &Raw<'_>, places: &mut Places) {
                match FAMILY_OF[usize::from(event.kind)] {
                    Of::calls => self.calls.survey(event, places),
                    $(Of::$always => self.others.$always.survey(event, places),)*
                    $(Of::$name => self.others.$name.survey(event, places),)*
                    Of::unknown => {}
                }
            }

            #[inline]
            pub(crate) fn event(
                &mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>,
            ) -> Result<(), BpfError> {
                let Families { calls, others } = self;
                match FAMILY_OF[usize::from(event.kind)] {
                    Of::calls => calls.convert(event, at_ns, conversion, &mut |call, shape, row, conversion| {
                        others.call(call, shape, row, conversion)
                    }),
                    $(Of::$always => {
                        others.$always.event(event, at_ns, conversion)?;
                        calls.after(conversion)
                    })*
                    $(Of::$name => others.$name.event(event, at_ns, conversion),)*
                    Of::unknown => Ok(()),
                }
            }

            /// The family of system calls.
            pub(crate) fn calls(&mut self) -> &mut $calls {
                &mut self.calls
            }

            pub(crate) fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
                self.calls.finish(conversion)?;
                $(self.others.$always.finish(conversion)?;)*
                $(self.others.$name.finish(conversion)?;)*
                Ok(())
            }
        }
    };
}
