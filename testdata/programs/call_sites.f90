! Writes from places that the offset names: the line of the main program * 100000 + the line of the write.
! Each record is flushed in the line that writes it.
program call_sites
   implicit none
   integer :: i
   character(len=4096) :: path

   call get_command_argument(1, path)
   open (10, file=trim(path), access='stream', form='unformatted')
   do i = 1, 300
      write (10, pos=__LINE__*100000 + __LINE__ + 1) 'x'; flush (10)
      call leaf(__LINE__)
      call leaf(__LINE__)
      call chain(__LINE__)
   end do
   close (10)

contains

   subroutine leaf(root)
      integer, intent(in) :: root
      write (10, pos=root*100000 + __LINE__ + 1) 'x'; flush (10)
   end subroutine leaf

   subroutine chain(root)
      integer, intent(in) :: root
      real :: field(3000)
      field = real(root)
      write (10, pos=root*100000 + __LINE__ + 1) 'x'; flush (10)
      if (sum(field) < 0) stop 1
   end subroutine chain

end program call_sites
